// Locks between processes. A lock ends with its process, so none is ever stale.
#pragma once

#include <chrono>
#include <filesystem>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/descriptor.h"

namespace HEADRACE_API headrace {

// An exclusive lock on a folder, between processes and between threads. It leaves nothing in the folder.
class FolderLock {
 public:
  // Waits for the lock no longer than `timeout`. Not held if there is no folder, or its file system has no locks,
  // of which it warns once.
  FolderLock(const std::filesystem::path& folder, std::chrono::milliseconds timeout) noexcept;

  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  bool held() const noexcept { return held_; }
  // Returns whether another holder kept the lock the whole time.
  bool is_anothers() const noexcept { return is_anothers_; }

 private:
  Descriptor descriptor_;
  bool held_ = false, is_anothers_ = false;
};

// Locks a new file until it is closed: if it is unlocked, its writer is gone. Returns 0 or the errno. Files on
// file systems without locks count as locked, with one warning a folder; there a dead writer's files look like a
// live one's.
int lock_for_writer(const Descriptor& file, const std::filesystem::path& path) noexcept;

}  // namespace headrace
