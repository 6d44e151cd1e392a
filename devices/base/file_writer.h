// A file written front to back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/descriptor.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/temporary_name.h"

namespace HEADRACE_API headrace {

// kWhole: under its name lies nothing, or what was there, until commit(). kGrowing: so that others can follow it,
// it grows under its name where nothing lies there; a file that is there is replaced by commit() as ever.
enum class Appears { kWhole, kGrowing };

// Of symbolic links under the file's own name. kReplaced is for names that the program chose: what others put
// there, a link or a pipe, is replaced and never written to.
enum class Links { kFollowed, kReplaced };

// Not thread-safe. Destroyed without commit() it leaves what was there, and of a growing file what was written; so
// does a signal (signals.h). Followed links have their target replaced, with the permissions that it has; a
// character device or a named pipe, which waits for its reader (BlockingCall), is written to as it is, and so is a
// file that is the process's own standard output or error. Every failure is a DataError that names the path.
class FileWriter {
 public:
  // Throws where the file cannot be created or must not be replaced: kInvalidArgument for a folder and whatever
  // else is no file, kNotFound where its folder is missing, kIo where permissions are.
  explicit FileWriter(std::filesystem::path path, Appears appears = Appears::kWhole,
                      Links links = Links::kFollowed);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Adds at the end; buffered until flush() or commit().
  void append(std::span<const std::byte> bytes);
  void flush();
  // Bytes appended so far.
  std::uint64_t size() const noexcept { return written_ + buffer_.size(); }

  // Puts the file in place, replacing what was there: fsync, rename, fsync of the folder. Once, at the end.
  void commit(Durability durability = Durability::kNow);

 private:
  void open_in_place();
  void create(Appears appears, bool exists);
  void write(std::span<const std::byte> bytes);
  // From here on the file is not removed.
  void keep() noexcept;

  std::filesystem::path path_;        // links followed
  std::filesystem::path written_to_;  // path_, or a name beside it until commit()
  TemporaryName listed_;
  bool unfinished_ = false;  // to be removed
  bool in_place_ = false;    // bytes go into what lay there
  Descriptor descriptor_;
  std::uint64_t written_ = 0;
  std::vector<std::byte> buffer_;
};

// A file that grows at its end while others read it. Not thread-safe. Locked for as long as it lives:
// is_being_written() tells others. Every failure is a DataError that names the path; a failed append() may have
// written part of its bytes.
class AppendFile {
 public:
  // Creates the file, which appears under its name with `head` in it. Replaces what was there.
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
