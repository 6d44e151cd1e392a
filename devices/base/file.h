// Access to files: the operating system's and, for reading, those behind URLs (remote.h). All other code reads and
// writes through this header, or through file_writer.h and file_lock.h.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/descriptor.h"

namespace HEADRACE_API headrace {

namespace remote {
class Handle;
}

// Bytes of a file that will be read.
struct ByteExtent {
  std::uint64_t offset = 0, size = 0;
  std::uint64_t used = 0;  // of them, after which they are not needed any more; 0: all
};

// A file opened for reading by position. Thread-safe: reads carry their own offset.
// Every failure is a DataError that names the path and the offset.
class File {
 public:
  // Throws DataError: kNotFound if missing, kIo if not readable, kInvalidArgument for a directory.
  static File open(const std::filesystem::path& path);

  const std::filesystem::path& path() const noexcept { return path_; }
  // Returns the size in bytes when the file was opened.
  std::uint64_t size() const noexcept { return size_; }
  // Returns the time of the last change before it was opened: nanoseconds of the system's clock. Of a URL: a
  // number that changes with the file's ETag or time of change.
  std::uint64_t modified_ns() const noexcept { return modified_ns_; }

  // Fills `into` from `offset`. Throws DataError(kDataCorrupt) if the file is too short.
  void read_exact(std::uint64_t offset, std::span<std::byte> into) const;
  // Reads at most into.size() bytes; returns how many, 0 at the end.
  std::size_t read_some(std::uint64_t offset, std::span<std::byte> into) const;
  // Fetches these bytes ahead, neighbours together, if the file is remote; affects speed only. Does not block.
  void will_read(std::span<const ByteExtent> extents) const;
  bool is_remote() const noexcept { return remote_ != nullptr; }

 private:
  File(std::filesystem::path path, Descriptor descriptor, std::uint64_t size, std::uint64_t modified_ns)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), size_(size), modified_ns_(modified_ns) {}

  File(std::filesystem::path path, std::shared_ptr<remote::Handle> remote);

  std::filesystem::path path_;
  Descriptor descriptor_;  // not open if the file is remote
  std::uint64_t size_ = 0;
  std::uint64_t modified_ns_ = 0;
  std::shared_ptr<remote::Handle> remote_;  // null: the operating system's
};

// Reads the whole file. Throws DataError(kOutOfMemory) if it is larger than `limit`.
std::vector<std::byte> read_whole_file(const std::filesystem::path& path,
                                       std::uint64_t limit = std::uint64_t{1} << 32);

// kNow: written bytes survive a power loss once the call returns. kLater: when the system gets to it; after a
// power loss the file may be empty or damaged, so it needs a checksum.
enum class Durability { kNow, kLater };

// Replaces `path` by `bytes`, whole or not at all: temporary file, fsync, rename, fsync of the folder.
void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> bytes,
                           Durability durability = Durability::kNow);
void write_file_atomically(const std::filesystem::path& path, std::string_view text);
// Appends to the file, which is created if missing; in one write, so that other processes' appends stay whole.
void append_to_file(const std::filesystem::path& path, std::string_view text);

// Creates the folder and its parents; does nothing if it exists.
void make_folders(const std::filesystem::path& path);
// Removes the file; does nothing if there is none.
void remove_file(const std::filesystem::path& path);
// Returns whether a process holds the file open as an AppendFile or FileWriter; false if it cannot be opened.
bool is_being_written(const std::filesystem::path& path);

struct DirectoryEntry;
// Returns whether the file, "NAME.PROCESS.NUMBER.tmp", was left by a FileWriter or AppendFile whose process is
// gone. Looks twice at a file changed within the last minute; without locks in the file system, that one does not
// count.
bool is_left_over(const DirectoryEntry& entry);

// The kind of file at a path, links followed. One that cannot be examined is kMissing.
enum class PathKind { kMissing, kFile, kDirectory, kPipe, kOther };
PathKind path_kind(const std::filesystem::path& path);

// Identifies a file or folder, whatever its path.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  auto operator<=>(const FileIdentity&) const = default;
};
// Returns the identity of the file at the path, links followed. Throws DataError if there is none.
FileIdentity identity_of(const std::filesystem::path& path);

// The names in a folder without "." and "..", sorted bytewise; links are followed, a dangling one is an entry of
// size 0. Throws DataError when the folder cannot be read.
struct DirectoryEntry {
  std::filesystem::path path;
  bool is_directory = false;
  bool is_link = false;  // a symbolic link; all other members describe its target
  std::uint64_t size = 0;
  std::uint64_t modified_ns = 0;
  FileIdentity identity = {};
};
std::vector<DirectoryEntry> list_directory(const std::filesystem::path& path);

// Returns why a name would lead out of the folder that it belongs to: it is empty, holds a NUL, or has a part
// "..", between '/' or '\\'. Null: it stays.
const char* leads_out(std::string_view name) noexcept;
// Returns the path of a file by its name in `folder`, a URL or not, which a listing, an archive or an index chose.
// Throws DataError(kDataCorrupt) for an absolute name and one that leads_out(), behind http:// also as %2E. A key
// of a store may begin with '/': that is an empty name, and no path of this machine.
std::filesystem::path path_below(const std::filesystem::path& folder, std::string_view name);
// Returns the path of a file that a table in `folder` names. A table on a disk is its user's, and may name any
// path and URL; one behind a URL names what is below its folder, or URLs of its own host. Throws
// DataError(kDataCorrupt) for another name, and for schemes that are not read.
std::filesystem::path named_in_table(const std::filesystem::path& folder, const std::string& name);

}  // namespace headrace
