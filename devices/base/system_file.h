// The system's calls on files, each with its retries, injected faults and errors. Only for the files of this
// folder that open, write and lock: all other code uses file.h and file_writer.h.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file_entry.h"

struct stat;

namespace headrace {

// The operations in which tests can inject faults: calls that fail or fall short.
enum class FileOperation { kOpen, kRead, kWrite, kSync, kRename, kRemove, kLock };

// Injected faults. Called from any thread.
class FileFaults {
 public:
  virtual ~FileFaults() = default;
  // Called before each call to the system. Returns the errno with which it must fail; 0: none. `bytes` is the size
  // of a read or write at `offset`; it may be reduced.
  virtual int before(FileOperation operation, const std::filesystem::path& path, std::uint64_t offset,
                     std::size_t& bytes) = 0;
};

// Replaces the faults of the whole process; null, the default: none. Returns the previous ones.
FileFaults* set_file_faults(FileFaults* faults) noexcept;

// Lists a file as temporary as long as this object lives. Removes nothing itself. Thread-safe. At most
// kMaxTemporaryNames are listed at once; further files stay behind if a signal ends the process.
class TemporaryName {
 public:
  TemporaryName() = default;
  // REQUIRES: the file is not created yet, so that it never exists unlisted.
  explicit TemporaryName(const std::filesystem::path& path);
  TemporaryName(TemporaryName&& other) noexcept;
  TemporaryName& operator=(TemporaryName&& other) noexcept;
  ~TemporaryName();

  void release() noexcept;

 private:
  std::size_t slot_ = 0;  // from 1; 0: not listed
  char* name_ = nullptr;
};

constexpr std::size_t kMaxTemporaryNames = 256;

// Removes every listed file that exists; returns how many. Async-signal-safe.
int remove_temporary_files() noexcept;

}  // namespace headrace

namespace headrace::os {

// The maximum size of one call: Linux itself stops a little below 2 GiB.
inline constexpr std::size_t kMaxCall = std::size_t{1} << 30;

// Throws DataError: what could not be done to `path`, why, and what to try next.
[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what, int error,
                       std::uint64_t offset = DataLocation::kUnknown);

// Returns the errno with which a call must fail; 0: none. May reduce `bytes`.
int fault(FileOperation operation, const std::filesystem::path& path, std::uint64_t offset = 0,
          std::size_t* bytes = nullptr);

// Returns whether the path contains a NUL, where the system would cut it. Every call here and in file.h refuses
// such a path.
bool has_nul(const std::filesystem::path& path) noexcept;
// Calls stat(2), following links. Returns false and sets errno if it fails.
bool look_at(const std::filesystem::path& path, struct stat& status) noexcept;
// Calls lstat(2), not following links.
bool look_at_link(const std::filesystem::path& path, struct stat& status) noexcept;
// Returns a descriptor that is not open, and sets errno, if it fails.
Descriptor open(const std::filesystem::path& path, int flags, mode_t mode = 0);

// Each throws DataError.
void write_all(const Descriptor& to, std::span<const std::byte> bytes, const std::filesystem::path& path,
               std::uint64_t offset);
// Writes from `offset` on, wherever the descriptor stands.
void write_at(const Descriptor& to, std::span<const std::byte> bytes, const std::filesystem::path& path,
              std::uint64_t offset);
void sync_file(const Descriptor& file, const std::filesystem::path& path);
void sync_folder(const std::filesystem::path& folder);
void rename_file(const std::filesystem::path& from, const std::filesystem::path& to);
// Calls flock(2). Returns 0 or the errno.
int lock(const Descriptor& file, const std::filesystem::path& path, int how) noexcept;
// Returns whether the errno says that the file system has no locks.
bool has_no_locks(int error) noexcept;
// Says once for each folder what its file system leaves unprotected.
void warn_without_locks(const std::filesystem::path& folder) noexcept;
// Locks a new file until it is closed: if it is unlocked, its writer is gone. Returns 0 or the errno. Files on
// file systems without locks count as locked, with one warning a folder; there a dead writer's files look like a
// live one's.
int lock_for_writer(const Descriptor& file, const std::filesystem::path& path) noexcept;

// Creates a new file, locked until it is closed.
Descriptor create_locked(const std::filesystem::path& path);

std::filesystem::path folder_of(const std::filesystem::path& path);

// A new file beside its final path, "NAME.PROCESS.NUMBER.tmp", created by create_locked(). An existing file of
// such a name, from a process that had the same number, is left alone.
struct TemporaryFile {
  std::filesystem::path path;
  TemporaryName listed;
  Descriptor descriptor;
};
TemporaryFile create_temporary(const std::filesystem::path& meant);

}  // namespace headrace::os
