// The files below a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace headrace {

struct FolderListing {
  // Relative, '/' between names; in bytewise order within each folder. Of an empty folder its path with '/' at its
  // end.
  std::vector<std::string> paths;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint64_t> modified_ns;
};

// Lists the files. Follows symbolic links, except links to a folder above themselves: the files of such a cycle
// are listed once, at their real location. Throws DataError if a folder cannot be read, or if links multiply the
// folders beyond the limit.
FolderListing list_files_below(const std::filesystem::path& folder);

}  // namespace headrace
