// Files as memory that processes share: to read a part of one, or to read and write its first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "headrace/devices/base/file.h"

namespace headrace {

// A part of a file in memory. A large part of a local file is mapped: all processes share its pages, and the
// system may evict and reload them. If the file is truncated, reading what is gone terminates the process
// (SIGBUS).
class FilePart {
 public:
  static constexpr std::uint64_t kMinMapped = std::uint64_t{4} << 20;  // bytes

  FilePart() = default;
  // Throws DataError if the file is too short, or cannot be read.
  FilePart(const File& file, std::uint64_t offset, std::uint64_t bytes);
  ~FilePart();
  FilePart(FilePart&& other) noexcept;
  FilePart& operator=(FilePart&& other) noexcept;

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
  std::vector<std::byte> copied_;  // owns them, unless they are mapped
  std::span<std::byte> mapped_;    // whole pages; empty: not mapped
};

// Returns whether the path is on a network or cluster file system, whose hosts do not share the pages of a
// mapping.
bool is_shared_by_hosts(const std::filesystem::path& path);

// A file that several processes read and write at once: its first bytes are memory that they share. Thread-safe,
// but for map(). Failures are DataErrors that name the path.
class MappedFile {
 public:
  // Creates the file, which appears whole: it begins with `head`, and its first `bytes` have their room on the
  // disk, for a page without would end the process that writes to it.
  static void create(const std::filesystem::path& path, std::span<const std::byte> head, std::uint64_t bytes);
  // Removes the file unless a process has called use() and has it open. Returns whether it is gone.
  static bool remove_unused(const std::filesystem::path& path);

  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const noexcept { return file_.path(); }
  // Returns the size in bytes when the file was opened.
  std::uint64_t size() const noexcept { return file_.size(); }

  // Maps the first bytes, once. REQUIRES: the file has them.
  void map(std::uint64_t bytes);
  std::byte* data() const noexcept { return map_; }

  // Keeps others from removing it as unused, as long as this object lives. Returns false if one does just now.
  bool use() noexcept;
  // Notes the time as that of its last change.
  void touch() const noexcept;

  void read_exact(std::uint64_t offset, std::span<std::byte> into) const { file_.read_exact(offset, into); }
  void write(std::uint64_t offset, std::span<const std::byte> bytes) const;
  // Lets the system read these bytes ahead.
  void will_read(std::uint64_t offset, std::uint64_t bytes) const noexcept;

 private:
  File file_;
  Descriptor writable_;
  std::byte* map_ = nullptr;
  std::uint64_t map_bytes_ = 0;
};

}  // namespace headrace
