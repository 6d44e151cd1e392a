// The files below a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace headrace {

struct FolderListing {
  std::vector<std::string> paths;  // relative, '/' between names; in bytewise order within each folder
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint64_t> modified_ns;
};

// Symbolic links are followed, but for links to folders that lead back to where they are: whatever lies on such a
// circle is listed once, where it really is. DataError where a folder cannot be read, and where links multiply the
// folders beyond all measure.
FolderListing list_files_below(const std::filesystem::path& folder);

}  // namespace headrace
