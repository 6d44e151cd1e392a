// A segment that is read, perhaps while its process still appends to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "headrace/cache/segment_format.h"
#include "headrace/devices/base/file.h"

namespace headrace {

// The index's name beside a segment's.
std::filesystem::path index_path(const std::filesystem::path& segment);

// Thread-safe once opened.
class SegmentReader {
 public:
  // DataError where the file cannot be read or is not a segment of this stream.
  SegmentReader(const std::filesystem::path& path, const SegmentStream& stream);

  const std::filesystem::path& path() const noexcept { return file_.path(); }
  std::uint64_t size() const noexcept { return file_.size(); }

  enum class Source { kIndex, kScan };
  struct Contents {
    Source from = Source::kScan;
    std::vector<SegmentEntry> entries;
  };
  // What the index says, where there is a sound one; else scan().
  Contents contents() const;
  // The valid entries, wherever they stand: every byte of them is read, what lies between them is passed over.
  std::vector<SegmentEntry> scan() const;

  // The entries between `at` and the present end of the file, `size`, by their headers alone: what is damaged is
  // found when it is read. Moves `at` behind the last; ends before one that is not yet there as a whole.
  std::vector<SegmentEntry> follow(std::uint64_t& at, std::uint64_t size) const;

  // The sample, in `scratch`; empty where its bytes are not what was stored.
  std::span<const std::byte> read(const SegmentEntry& entry, std::vector<std::byte>& scratch) const noexcept;

  // Whether the entry's header and bytes are both there as they were stored.
  bool holds(const SegmentEntry& entry) const;

 private:
  // What claims to be an entry at this place of a file of `size` bytes, its bytes not yet checked.
  std::optional<SegmentEntry> entry_at(std::uint64_t at, std::uint64_t size) const noexcept;
  // The first place from there on where an entry could begin; the file's size where there is none.
  std::uint64_t next_magic(std::uint64_t from) const;
  bool read_header(std::uint64_t at, std::span<std::byte> header) const noexcept;

  SegmentStream stream_;
  File file_;
};

}  // namespace headrace
