#include "headrace/devices/base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <thread>

#include "headrace/devices/base/file.h"
#include "headrace/devices/base/system_file.h"

namespace headrace {
namespace {

constexpr std::chrono::microseconds kPause{500};  // between two attempts

}  // namespace

// An opened folder's lock is no file operation that tests make fail.
FolderLock::FolderLock(const std::filesystem::path& folder, std::chrono::milliseconds timeout) noexcept
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (!descriptor_.is_open()) return;
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (true) {
    held_ = ::flock(descriptor_.get(), LOCK_EX | LOCK_NB) == 0;
    const bool again = !held_ && (errno == EWOULDBLOCK || errno == EINTR);
    if (!again || std::chrono::steady_clock::now() >= end) return;
    std::this_thread::sleep_for(kPause);
  }
}

bool is_being_written(const std::filesystem::path& path) {
  const Descriptor file = os::open(path, O_RDONLY | O_NONBLOCK);
  return file.is_open() && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

int lock_for_writer(int descriptor) noexcept {
  if (::flock(descriptor, LOCK_EX) == 0 || errno == ENOLCK || errno == EOPNOTSUPP) return 0;
  return errno;
}

}  // namespace headrace
