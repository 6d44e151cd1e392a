// All segments of one stream.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "headrace/cache/segment_reader.h"

namespace headrace {

struct FoundSegment {
  std::unique_ptr<SegmentReader> reader;
  std::vector<SegmentEntry> entries;
};

// The segments in the folder that can be read, in the order of their names; none where there is no folder. Tidies
// up after processes that died: indexes their segments, removes those without entries and files half written. What
// cannot be tidied up stays as it is.
std::vector<FoundSegment> open_segments(const std::filesystem::path& folder, const SegmentStream& stream);

}  // namespace headrace
