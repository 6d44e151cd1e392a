// Reads a segment's file, perhaps while another process appends to it, and writes one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "headrace/cache/disk/segment_format.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"

namespace headrace {

// Returns the path of a segment's index.
std::filesystem::path index_path(const std::filesystem::path& segment);

// Thread-safe once opened.
class SegmentReader {
 public:
  // Throws DataError if the file cannot be read or is not a segment of this stream.
  SegmentReader(const std::filesystem::path& path, const SegmentStream& stream);

  const std::filesystem::path& path() const noexcept { return file_.path(); }
  std::uint64_t size() const noexcept { return file_.size(); }

  enum class Source { kIndex, kScan };
  struct Contents {
    Source from = Source::kScan;
    std::vector<SegmentEntry> entries;
  };
  // Returns the contents of the index if there is a sound one, else those found by scan().
  Contents contents() const;
  // Returns all valid entries, wherever they are. Reads every byte of them and skips bytes between them.
  std::vector<SegmentEntry> scan() const;

  // Returns the entries between `at` and the file's current end, `size`. Reads only their headers: read() finds
  // damage to their bytes. Moves `at` past the last one and stops before an incomplete entry.
  std::vector<SegmentEntry> follow(std::uint64_t& at, std::uint64_t size) const;

  // Returns the sample, in `scratch`; empty if its bytes are damaged.
  std::span<const std::byte> read(const SegmentEntry& entry, std::vector<std::byte>& scratch) const noexcept;

  // Returns whether the entry's header and bytes are both undamaged. Uses `scratch` for its bytes.
  bool holds(const SegmentEntry& entry, std::vector<std::byte>& scratch) const;

 private:
  // Returns the entry whose header is at `at` of a file of `size` bytes. Its stored bytes are not checked.
  std::optional<SegmentEntry> entry_at(std::uint64_t at, std::uint64_t size) const noexcept;
  // Returns the first offset >= `from` where an entry could begin; the file's size if there is none.
  std::uint64_t next_magic(std::uint64_t from) const;
  bool read_header(std::uint64_t at, std::span<std::byte> header) const noexcept;

  SegmentStream stream_;
  File file_;
};

// A segment that this process appends to. Not thread-safe. Throws DataError for every failure of the file system.
class SegmentWriter {
 public:
  // Creates a segment with a unique name in `folder`, and the folder if necessary.
  SegmentWriter(const std::filesystem::path& folder, const SegmentStream& stream);

  const std::filesystem::path& path() const noexcept { return file_.path(); }
  // Returns the size including buffered bytes.
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

// Follows the entries that other processes append to a stream's folder while this one runs.

// All segments of one stream.
struct FoundSegment {
  std::unique_ptr<SegmentReader> reader;
  std::vector<SegmentEntry> entries;
};

// Returns the readable segments in the folder, ordered by name; none if there is no folder. Cleans up after dead
// processes where possible: indexes their segments, removes segments without entries and half-written files.
std::vector<FoundSegment> open_segments(const std::filesystem::path& folder, const SegmentStream& stream);

// Not thread-safe. Owns the readers of all segments that other processes write or wrote.
class SegmentFollowers {
 public:
  // Called for each new sample. The reader lives as long as this object.
  using Take = std::function<void(const SegmentReader& reader, const SegmentEntry& entry)>;

  SegmentFollowers(std::filesystem::path folder, const SegmentStream& stream)
      : folder_(std::move(folder)), stream_(stream) {}

  // Takes all existing entries, after cleaning up after dead processes.
  void open(const Take& take);
  // Takes the entries added since. Skips those that cannot be read.
  void catch_up(const Take& take);
  // Excludes this process's own segment.
  void leave_out(const std::filesystem::path& segment) { segments_[segment] = {}; }

 private:
  struct Followed {
    std::unique_ptr<SegmentReader> reader;  // null: not followed
    std::uint64_t at = 0;                   // everything before it is known
  };

  void follow(const DirectoryEntry& file, const Take& take);

  std::filesystem::path folder_;
  SegmentStream stream_;
  std::map<std::filesystem::path, Followed> segments_;
};

}  // namespace headrace
