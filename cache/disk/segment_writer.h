// A segment that this process appends to.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "headrace/cache/disk/segment_format.h"
#include "headrace/devices/base/append_file.h"

namespace headrace {

// Not thread-safe. Every failure of the file system is a DataError.
class SegmentWriter {
 public:
  // Creates a segment with a unique name in `folder`, and the folder if need be.
  SegmentWriter(const std::filesystem::path& folder, const SegmentStream& stream);

  const std::filesystem::path& path() const noexcept { return file_.path(); }
  // Including what is still buffered.
  std::uint64_t size() const noexcept { return file_.size() + buffer_.size(); }

  // Adds an entry; its offset, bytes and checksum are filled in here. Buffered until flush().
  SegmentEntry append(SegmentEntry entry, std::span<const std::byte> stored);
  void flush();
  // Completes the segment: writes everything, and the index beside it. Does not wait for the disk.
  void seal();

 private:
  SegmentStream stream_;
  AppendFile file_;
  std::vector<std::byte> buffer_;
  std::vector<SegmentEntry> entries_;
};

}  // namespace headrace
