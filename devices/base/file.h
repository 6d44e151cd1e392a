// Access to files: the operating system's and, for reading, those behind URLs (remote.h). All other code reads and
// writes through this header, or through file_writer.h and file_lock.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/file_entry.h"

namespace HEADRACE_API headrace {

namespace remote {
class Handle;
}
class FilePart;

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
  // Starts reading ahead for sequential reads from `offset`, which follow so many bytes of other files; affects
  // speed only. Does not block.
  void will_read_from(std::uint64_t offset, std::uint64_t bytes_before) const;
  bool is_remote() const noexcept { return remote_ != nullptr; }
  // Returns what is known of a remote file; null: it is the operating system's.
  const remote::Handle* remote() const noexcept { return remote_.get(); }

 private:
  friend FilePart;
  File(std::filesystem::path path, Descriptor descriptor, std::uint64_t size, std::uint64_t modified_ns)
      : path_(std::move(path)), descriptor_(std::move(descriptor)), size_(size), modified_ns_(modified_ns) {}

  File(std::filesystem::path path, std::shared_ptr<remote::Handle> remote);

  std::filesystem::path path_;
  Descriptor descriptor_;  // not open if the file is remote
  std::uint64_t size_ = 0;
  std::uint64_t modified_ns_ = 0;
  std::shared_ptr<remote::Handle> remote_;  // null: the operating system's
};

// Returns size and time of change of a file without opening it, as File has them. Throws what File::open() would.
struct FileFacts {
  std::uint64_t size = 0, modified_ns = 0;
  // Of a local file: the system's time of its last change of any kind, which programs cannot set.
  std::uint64_t changed_ns = 0;
};
FileFacts look_at_file(const std::filesystem::path& path);

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

// Returns the folder that the environment variable names, else headrace/`name` in the user's folder for caches,
// $XDG_CACHE_HOME or ~/.cache; empty if none of these is set.
std::filesystem::path cache_folder(const char* variable, const char* name);
// Creates the folder and its parents; does nothing if it exists, or is one of a store.
void make_folders(const std::filesystem::path& path);
// Removes the file, also an object of a store; does nothing if there is none.
void remove_file(const std::filesystem::path& path);

// Returns the kind of file at the path, links followed.
PathKind path_kind(const std::filesystem::path& path);

// Returns the identity of the file at the path, links followed. Throws DataError if there is none.
FileIdentity identity_of(const std::filesystem::path& path);

// Returns the names in a folder without "." and "..", sorted bytewise; links are followed, a dangling one is an
// entry of size 0. Throws DataError when the folder cannot be read.
std::vector<DirectoryEntry> list_directory(const std::filesystem::path& path);

// The contents of a folder, in few bytes for each file: there may be millions.
struct FolderContents {
  struct OfFile {
    std::uint32_t name, name_size;  // in `names`
    std::uint64_t size, modified_ns;
  };
  struct OfFolder {
    std::string name;
    FileIdentity identity;
    bool is_link;  // a symbolic link to it
  };
  std::string names = {};  // of files
  std::vector<OfFile> files = {};
  std::vector<OfFolder> folders = {};

  std::string_view name_of(const OfFile& file) const noexcept {
    return {names.data() + file.name, file.name_size};
  }
};

// Returns the contents of a local folder as list_directory() does, files and folders apart.
FolderContents contents_of(const std::filesystem::path& folder);

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

// Returns whether writing a file at `output` changes `input`, or a file in the folder `input`: compared by device
// and inode, links followed. False if `output` does not exist; otherwise walks the folder.
bool would_overwrite(const std::filesystem::path& output, const std::filesystem::path& input);

// Returns whether a file at `output` would lie in the folder `input`, at any depth, links followed.
bool would_add(const std::filesystem::path& output, const std::filesystem::path& input);

}  // namespace headrace

namespace headrace {

// A call that may wait forever for another program, such as opening a named pipe. While one lives, signal handlers
// know that only the end of the process ends the wait. Thread-safe.
class BlockingCall {
 public:
  BlockingCall() noexcept { ++calls_; }
  ~BlockingCall() { --calls_; }
  BlockingCall(const BlockingCall&) = delete;
  BlockingCall& operator=(const BlockingCall&) = delete;

  // Returns whether any call lives now. Async-signal-safe.
  static bool any() noexcept { return calls_ > 0; }

 private:
  static_assert(std::atomic<int>::is_always_lock_free, "a signal handler must not wait for a lock");
  inline static std::atomic<int> calls_{0};
};

// Bytes that come once, in order: from a named pipe, a terminal or another program. One thread at a time. Failures
// are DataErrors that name the path.
class Pipe {
 public:
  // Waits until a named pipe has a writer.
  static Pipe open(const std::filesystem::path& path);

  // Waits for and reads at least one byte; returns how many, 0 at the end.
  std::size_t read_some(std::span<std::byte> into);

 private:
  Pipe(std::filesystem::path path, Descriptor descriptor)
      : path_(std::move(path)), descriptor_(std::move(descriptor)) {}

  std::filesystem::path path_;
  Descriptor descriptor_;
  std::uint64_t offset_ = 0;
};

}  // namespace headrace
