// A file that grows at its end while others read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/descriptor.h"

namespace HEADRACE_API headrace {

// Not thread-safe. Locked for as long as it lives: is_being_written() tells others. Every failure is a DataError
// that names the path; a failed append() may have written part of its bytes.
class AppendFile {
 public:
  // Creates the file, which appears under its name with `head` in it. Replaces what was there.
  AppendFile(const std::filesystem::path& path, std::span<const std::byte> head);

  void append(std::span<const std::byte> bytes);

  const std::filesystem::path& path() const noexcept { return path_; }
  std::uint64_t size() const noexcept { return size_; }

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
  std::uint64_t size_ = 0;
};

}  // namespace headrace
