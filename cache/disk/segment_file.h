// A segment's file: read, perhaps while another process appends to it, and written.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "headrace/cache/disk/segment_format.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"

namespace headrace {

// The path of a segment's index.
std::filesystem::path index_path(const std::filesystem::path& segment);

// Thread-safe once opened.
class SegmentReader {
 public:
  // DataError if the file cannot be read or is not a segment of this stream.
  SegmentReader(const std::filesystem::path& path, const SegmentStream& stream);

  const std::filesystem::path& path() const noexcept { return file_.path(); }
  std::uint64_t size() const noexcept { return file_.size(); }

  enum class Source { kIndex, kScan };
  struct Contents {
    Source from = Source::kScan;
    std::vector<SegmentEntry> entries;
  };
  // What the index says if there is a sound one, else scan().
  Contents contents() const;
  // All valid entries, wherever they stand. Reads every byte of them and skips what lies between them.
  std::vector<SegmentEntry> scan() const;

  // The entries between `at` and the file's current end, `size`. Reads their headers only: damage to their bytes
  // is found by read(). Moves `at` past the last one and stops before an entry that is not complete yet.
  std::vector<SegmentEntry> follow(std::uint64_t& at, std::uint64_t size) const;

  // The sample, in `scratch`. Empty if its bytes are not what was stored.
  std::span<const std::byte> read(const SegmentEntry& entry, std::vector<std::byte>& scratch) const noexcept;

  // Whether the entry's header and bytes are both as they were stored. `scratch` is for its bytes.
  bool holds(const SegmentEntry& entry, std::vector<std::byte>& scratch) const;

 private:
  // What claims to be an entry at `at` of a file of `size` bytes. Its stored bytes are not checked.
  std::optional<SegmentEntry> entry_at(std::uint64_t at, std::uint64_t size) const noexcept;
  // The first offset >= `from` where an entry could begin; the file's size if there is none.
  std::uint64_t next_magic(std::uint64_t from) const;
  bool read_header(std::uint64_t at, std::span<std::byte> header) const noexcept;

  SegmentStream stream_;
  File file_;
};

// A segment that this process appends to. Not thread-safe. Every failure of the file system is a DataError.
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
