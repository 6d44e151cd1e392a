// A file written front to back that appears under its name whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "headrace/devices/base/file.h"

namespace headrace {

// Not thread-safe. Writes beside `path` under a name of its own; destroyed without commit() it leaves nothing.
// Every failure is a DataError that names the path.
class FileWriter {
 public:
  // Throws where the file cannot be created.
  explicit FileWriter(std::filesystem::path path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  // Adds at the end; buffered.
  void append(std::span<const std::byte> bytes);
  // Bytes appended so far.
  std::uint64_t size() const noexcept { return written_ + buffer_.size(); }

  // Puts the file in place, replacing what was there: fsync, rename, fsync of the folder. Once, at the end.
  void commit(Durability durability = Durability::kNow);

 private:
  void flush();
  void write(std::span<const std::byte> bytes);

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
  std::uint64_t written_ = 0;
  std::vector<std::byte> buffer_;
};

}  // namespace headrace
