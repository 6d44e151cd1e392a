// One process at a time.
#pragma once

#include <chrono>
#include <filesystem>

namespace headrace {

// An exclusive lock on a folder, between processes and between threads. It goes with its process, so it is never
// stale, and leaves nothing in the folder.
class FolderLock {
 public:
  // Waits for the lock no longer than `timeout`. Throws nothing: where there is no folder, or its file system has
  // no locks, it is not held either.
  FolderLock(const std::filesystem::path& folder, std::chrono::milliseconds timeout) noexcept;
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  bool held() const noexcept { return held_; }

 private:
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace headrace
