// A folder of a test's own, removed with everything in it.
#pragma once

#include <cstddef>
#include <filesystem>
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

}  // namespace headrace::test
