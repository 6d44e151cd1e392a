// The types through which file.h reaches the system's files (system_file.h) and those behind URLs (remote.h).
#pragma once

#include <compare>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// A descriptor of the operating system, closed by its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) noexcept : value_(value) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      close();
      value_ = std::exchange(other.value_, -1);
    }
    return *this;
  }

  int get() const noexcept { return value_; }
  bool is_open() const noexcept { return value_ >= 0; }
  void close() noexcept;

 private:
  int value_ = -1;
};

// Bytes of a file that will be read.
struct ByteExtent {
  std::uint64_t offset = 0, size = 0;
  std::uint64_t used = 0;  // of them, after which they are not needed any more; 0: all
};

// The kind of file at a path, links followed. One that cannot be examined is kMissing.
enum class PathKind { kMissing, kFile, kDirectory, kPipe, kOther };

// Identifies a file or folder, whatever its path.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

// A name in a folder, and what it stands for.
struct DirectoryEntry {
  std::filesystem::path path;
  bool is_directory = false;
  bool is_link = false;  // a symbolic link; all other members describe its target
  std::uint64_t size = 0;
  std::uint64_t modified_ns = 0;
  FileIdentity identity = {};
};

}  // namespace headrace
