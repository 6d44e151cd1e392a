// The system's calls on files, each with its retries, its injected faults and its errors. For the files of this
// folder that open, write and lock: the rest of the tree uses file.h and file_writer.h.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "headrace/devices/base/descriptor.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/temporary_name.h"

struct stat;

namespace headrace {

// What tests put into the one door to the operating system's files: calls that fail or fall short.
enum class FileOperation { kOpen, kRead, kWrite, kSync, kRename, kRemove };

// Called from any thread.
class FileFaults {
 public:
  virtual ~FileFaults() = default;
  // Before each call to the system: the errno it shall fail with, 0: none. `bytes` is what a read or write is
  // about to ask for, from `offset`; it may be made smaller.
  virtual int before(FileOperation operation, const std::filesystem::path& path, std::uint64_t offset,
                     std::size_t& bytes) = 0;
};

// Replaces the faults of the whole process; null: none, as in every program but tests. Returns those before.
FileFaults* set_file_faults(FileFaults* faults) noexcept;

}  // namespace headrace

namespace headrace::os {

// One call never asks for more: Linux itself stops a little below 2 GiB.
inline constexpr std::size_t kMaxCall = std::size_t{1} << 30;

// DataError: what could not be done to `path`, why, and what to try next.
[[noreturn]] void fail(const std::filesystem::path& path, const std::string& what, int error,
                       std::uint64_t offset = DataLocation::kUnknown);

// The errno that a call shall fail with, 0: none. May cut `bytes`.
int fault(FileOperation operation, const std::filesystem::path& path, std::uint64_t offset = 0,
          std::size_t* bytes = nullptr);

// Whether the system would see but the beginning of the path. Every call here and in file.h refuses such a path.
bool has_nul(const std::filesystem::path& path) noexcept;
// As stat(2), links followed; false where it fails, and errno says why.
bool look_at(const std::filesystem::path& path, struct stat& status) noexcept;
// As lstat(2), of a link itself.
bool look_at_link(const std::filesystem::path& path, struct stat& status) noexcept;
// Not open where it fails; errno says why.
Descriptor open(const std::filesystem::path& path, int flags, mode_t mode = 0);

// Each throws DataError.
void write_all(const Descriptor& to, std::span<const std::byte> bytes, const std::filesystem::path& path,
               std::uint64_t offset);
void sync_file(const Descriptor& file, const std::filesystem::path& path);
void sync_folder(const std::filesystem::path& folder);
void rename_file(const std::filesystem::path& from, const std::filesystem::path& to);
// A new file, locked until it is closed (file_lock.h).
Descriptor create_locked(const std::filesystem::path& path);

std::filesystem::path folder_of(const std::filesystem::path& path);

// A new file beside the one that it will become, "NAME.PROCESS.NUMBER.tmp", created as create_locked() does. What
// lies under such a name, from a process that had the same number, is left alone.
struct TemporaryFile {
  std::filesystem::path path;
  TemporaryName listed;
  Descriptor descriptor;
};
TemporaryFile create_temporary(const std::filesystem::path& meant);

}  // namespace headrace::os
