#include "headrace/devices/base/folder_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace headrace {
namespace {

constexpr std::chrono::microseconds kPause{500};  // between two attempts

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder, std::chrono::milliseconds timeout) noexcept
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) return;
  const auto end = std::chrono::steady_clock::now() + timeout;
  while (true) {
    held_ = ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0;
    const bool again = !held_ && (errno == EWOULDBLOCK || errno == EINTR);
    if (!again || std::chrono::steady_clock::now() >= end) return;
    std::this_thread::sleep_for(kPause);
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace headrace
