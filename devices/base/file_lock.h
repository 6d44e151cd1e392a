// Locks between processes. A lock ends with its process, so none is ever stale.
#pragma once

#include <chrono>
#include <filesystem>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/file_entry.h"

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

// Returns whether a process holds the file open as an AppendFile or FileWriter; false if it cannot be opened.
bool is_being_written(const std::filesystem::path& path);

// Returns whether the file, "NAME.PROCESS.NUMBER.tmp", was left by a FileWriter or AppendFile whose process is
// gone. Looks twice at a file changed within the last minute; without locks in the file system, that one does not
// count.
bool is_left_over(const DirectoryEntry& entry);

}  // namespace headrace
