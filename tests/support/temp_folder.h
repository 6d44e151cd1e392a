// A folder of a test's own, removed with everything in it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace headrace::test {

class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

  // Writes a file, making the folders above it; returns its path.
  std::filesystem::path write(const std::string& name, std::span<const std::byte> bytes) const;
  std::filesystem::path write(const std::string& name, std::string_view text) const;
  // Changes one byte of a file.
  static void patch(const std::filesystem::path& file, std::size_t offset, std::byte value);

 private:
  std::filesystem::path path_;
};

// What lies in a folder, to compare before with after.

using FolderContents = std::map<std::string, std::string>;

// Every name below `folder`: the bytes of files, the targets of links, the types of all else. Folders that may not
// be read are passed over.
FolderContents contents_of(const std::filesystem::path& folder);

// All of a file's bytes; empty where it cannot be read.
std::string text_of(const std::filesystem::path& file);

}  // namespace headrace::test
