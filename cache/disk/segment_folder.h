// All segments of one stream.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "headrace/cache/disk/segment_reader.h"

namespace headrace {

struct FoundSegment {
  std::unique_ptr<SegmentReader> reader;
  std::vector<SegmentEntry> entries;
};

// The readable segments in the folder, ordered by name; none if there is no folder. Cleans up after processes that
// died: indexes their segments, removes segments without entries and half-written files. What cannot be cleaned up
// is left alone.
std::vector<FoundSegment> open_segments(const std::filesystem::path& folder, const SegmentStream& stream);

}  // namespace headrace
