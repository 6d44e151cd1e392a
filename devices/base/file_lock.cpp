#include "headrace/devices/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <optional>
#include <string_view>
#include <thread>

#include "headrace/devices/base/file.h"
#include "headrace/devices/base/system_file.h"

namespace headrace {
namespace {

constexpr std::chrono::microseconds kPause{500};  // between two attempts
// A new file is locked a moment after it appears.
constexpr std::chrono::milliseconds kUntilLocked{100};
constexpr std::chrono::seconds kYoung{60};

// "NAME.PROCESS.NUMBER.tmp"
bool is_temporary_name(std::string_view name) {
  if (!name.ends_with(".tmp")) return false;
  name.remove_suffix(4);
  for (int number = 0; number < 2; ++number) {
    const std::size_t before = name.find_last_not_of("0123456789");
    if (before == std::string_view::npos || name[before] != '.' || before + 1 == name.size()) return false;
    name = name.substr(0, before);
  }
  return !name.empty();
}

// Returns std::nullopt if locks cannot tell.
std::optional<bool> is_locked(const std::filesystem::path& path) {
  const Descriptor file = os::open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  if (!file.is_open()) return std::nullopt;
  const int error = os::lock(file, path, LOCK_SH | LOCK_NB);
  if (error == 0) return false;
  return error == EWOULDBLOCK ? std::optional(true) : std::nullopt;
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder, std::chrono::milliseconds timeout) noexcept
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!descriptor_.is_open()) return;
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (true) {
    const int error = os::lock(descriptor_, folder, LOCK_EX | LOCK_NB);
    held_ = error == 0;
    is_anothers_ = error == EWOULDBLOCK;
    if (os::has_no_locks(error)) os::warn_without_locks(folder);
    const bool again = is_anothers_ || error == EINTR;
    if (!again || std::chrono::steady_clock::now() >= end) return;
    std::this_thread::sleep_for(kPause);
  }
}

bool is_left_over(const DirectoryEntry& entry) {
  if (entry.is_directory || entry.is_link || !is_temporary_name(entry.path.filename().native())) return false;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const bool young = std::chrono::nanoseconds(entry.modified_ns) + kYoung > now;
  std::optional<bool> locked = is_locked(entry.path);
  if (locked == false && young) {
    std::this_thread::sleep_for(kUntilLocked);
    locked = is_locked(entry.path);
  }
  return locked ? !*locked : !young && path_kind(entry.path) == PathKind::kFile;
}

bool is_being_written(const std::filesystem::path& path) {
  const Descriptor file = os::open(path, O_RDONLY | O_NONBLOCK);
  return file.is_open() && os::lock(file, path, LOCK_SH | LOCK_NB) == EWOULDBLOCK;
}

}  // namespace headrace
