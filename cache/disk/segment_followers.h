// Follows the entries that other processes append to a stream's folder while this one runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "headrace/cache/disk/segment_file.h"

namespace headrace {

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
