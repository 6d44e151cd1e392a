// A segment that this process appends to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "headrace/cache/segment_format.h"
#include "headrace/devices/base/append_file.h"

namespace headrace {

// Not thread-safe. Every failure of the file system is a DataError.
class SegmentWriter {
 public:
  // Creates a segment of a name of its own in `folder`, and the folder.
  SegmentWriter(const std::filesystem::path& folder, const SegmentStream& stream);

  const std::filesystem::path& path() const noexcept { return file_.path(); }
  // With what is not written yet.
  std::uint64_t size() const noexcept { return file_.size() + buffer_.size(); }

  // Adds an entry; its offset, bytes and checksum are filled in here. Buffered until flush().
  SegmentEntry append(SegmentEntry entry, std::span<const std::byte> stored);
  void flush();
  // Ends the segment: everything is written, and the index beside it. Waits for no disk.
  void seal();

 private:
  SegmentStream stream_;
  AppendFile file_;
  std::vector<std::byte> buffer_;
  std::vector<SegmentEntry> entries_;
};

}  // namespace headrace
