// The door to the operating system's files. Everything above reads and writes through here, or through what takes
// longer: file_writer.h, file_lock.h.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/descriptor.h"

namespace HEADRACE_API headrace {

// A file opened for reading by position. Thread-safe: reads carry their own offset.
// Every failure is a DataError that names the path and the offset.
class File {
 public:
  // Throws kNotFound when missing, kIo when not readable, kInvalidArgument for a directory.
  static File open(const std::filesystem::path& path);

  const std::filesystem::path& path() const noexcept { return path_; }
  // Size in bytes when it was opened.
  std::uint64_t size() const noexcept { return size_; }
  // When it was last changed, as of then: nanoseconds of the system's clock.
  std::uint64_t modified_ns() const noexcept { return modified_ns_; }

  // Fills `into` from `offset`; a short file is a DataError (kDataCorrupt), never stale bytes.
  void read_exact(std::uint64_t offset, std::span<std::byte> into) const;
  // Reads at most into.size() bytes; returns how many, 0 at the end.
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> into) const;

 private:
  File(std::filesystem::path path, Descriptor descriptor, std::uint64_t size, std::uint64_t modified_ns)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), size_(size), modified_ns_(modified_ns) {}

  std::filesystem::path path_;
  Descriptor descriptor_;
  std::uint64_t size_ = 0;
  std::uint64_t modified_ns_ = 0;
};

// The whole file; `limit` guards against reading something absurd (kOutOfMemory beyond it).
std::vector<std::byte> read_whole_file(const std::filesystem::path& path,
                                       std::uint64_t limit = std::uint64_t{1} << 32);

// kNow: what was written survives a loss of power once the call returns. kLater: when the system gets to it; after
// a loss of power the file may be empty or damaged, so it needs a checksum.
enum class Durability { kNow, kLater };

// Replaces `path` by `bytes`, whole or not at all: temporary file, fsync, rename, fsync of the folder.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           Durability durability = Durability::kNow);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);
// At the end of the file, which is made where there is none; in one write, so that what others append stays whole.
void append_to_file(const std::filesystem::path& path, std::string_view text);

// Makes the folder and those above it; nothing where it exists.
void make_folders(const std::filesystem::path& path);
// Nothing where there is none.
void remove_file(const std::filesystem::path& path);
// Whether some process holds the file open as an AppendFile or FileWriter. False where it cannot be opened.
bool is_being_written(const std::filesystem::path& path);

struct DirectoryEntry;
// Whether the file is one of a FileWriter or AppendFile, "NAME.PROCESS.NUMBER.tmp", whose process is gone. Looks
// twice at one that was changed within a minute; where the file system has no locks, that one is none.
bool is_left_over(const DirectoryEntry& entry);

// What lies at a path, links followed. Anything that cannot be looked at is kMissing.
enum class PathKind { kMissing, kFile, kDirectory, kPipe, kOther };
PathKind path_kind(const std::filesystem::path& path);

// What tells two files or folders apart, whatever their paths.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};
// Of what lies at the path, links followed. Throws DataError where nothing does.
FileIdentity identity_of(const std::filesystem::path& path);

// The names in a folder without "." and "..", sorted bytewise; links are followed, a dangling one is an entry of
// size 0. Throws DataError when the folder cannot be read.
struct DirectoryEntry {
  std::filesystem::path path;
  bool is_directory = false;
  bool is_link = false;  // a symbolic link; all else is of what it leads to
  std::uint64_t size = 0;
  std::uint64_t modified_ns = 0;
  FileIdentity identity = {};
};
std::vector<DirectoryEntry> list_directory(const std::filesystem::path& path);

}  // namespace headrace
