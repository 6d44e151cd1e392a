// A file written front to back, on this machine or in a store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/remote.h"
#include "headrace/devices/base/system_file.h"

namespace HEADRACE_API headrace {

// kWhole: the name keeps its previous file, or none, until commit(). kGrowing: if the name is free, the file grows
// under it so that others can follow it; an existing file is still replaced by commit().
enum class Appears { kWhole, kGrowing };

// The treatment of symbolic links under the file's name. kReplaced is for names that the program chose: a link or
// pipe that others put there is replaced and never written to.
enum class Links { kFollowed, kReplaced };

// Not thread-safe. Without commit(), the destructor or a signal (signals.h) leaves the previous file, or what was
// written of a growing one. The target of a followed link is replaced and keeps its permissions. Written to in
// place: a character device, a named pipe (which waits for its reader: BlockingCall), and a file that is the
// process's standard output or error. A URL names an object of a store, which appears whole or not at all. Every
// failure is a DataError that names the path.
class FileWriter {
 public:
  // Throws if the file cannot be created or must not be replaced: kInvalidArgument for a folder or anything else
  // that is no file, kNotFound if its folder is missing, kIo if permissions are. Throws ConfigError for a URL that
  // nothing can be written to.
  explicit FileWriter(std::filesystem::path path, Appears appears = Appears::kWhole,
                      Links links = Links::kFollowed);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Appends; buffered until flush() or commit().
  void append(std::span<const std::byte> bytes);
  void flush();
  // Returns the number of bytes appended so far.
  std::uint64_t size() const noexcept { return upload_ != nullptr ? upload_->size() : written_ + buffer_.size(); }

  // Puts the file in place, replacing any previous one: fsync, rename, fsync of the folder. REQUIRES: called once,
  // last.
  void commit(Durability durability = Durability::kNow);

 private:
  void open_in_place();
  void create(Appears appears, bool exists);
  void write(std::span<const std::byte> bytes);
  // Keeps the file from being removed.
  void keep() noexcept;

  std::unique_ptr<remote::Upload> upload_;  // null: a file of this machine
  std::filesystem::path path_;              // links followed
  std::filesystem::path written_to_;        // path_, or a name beside it until commit()
  TemporaryName listed_;
  bool unfinished_ = false;  // to be removed
  bool in_place_ = false;    // bytes go into the existing file
  Descriptor descriptor_;
  std::uint64_t written_ = 0;
  std::vector<std::byte> buffer_;
};

// A file that grows at its end while others read it. Not thread-safe. Locked as long as it lives: see
// is_being_written(). Every failure is a DataError that names the path; a failed append() may have written part of
// its bytes.
class AppendFile {
 public:
  // Creates the file, which appears under its name with `head` in it. Replaces any previous file.
  AppendFile(const std::filesystem::path& path, std::span<const std::byte> head);

  void append(std::span<const std::byte> bytes);

  const std::filesystem::path& path() const noexcept { return path_; }
  std::uint64_t size() const noexcept { return size_; }

 private:
  std::filesystem::path path_;
  Descriptor descriptor_;
  std::uint64_t size_ = 0;
};

}  // namespace headrace
