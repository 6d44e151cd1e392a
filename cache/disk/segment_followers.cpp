#include "headrace/cache/disk/segment_followers.h"

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"

namespace headrace {

void SegmentFollowers::open(const Take& take) {
  for (FoundSegment& found : open_segments(folder_, stream_)) {
    for (const SegmentEntry& entry : found.entries) take(*found.reader, entry);
    const std::uint64_t at = found.entries.empty() ? kSegmentHeaderBytes : found.entries.back().end();
    const std::filesystem::path path = found.reader->path();
    segments_[path] = {.reader = std::move(found.reader), .at = at};
  }
}

void SegmentFollowers::catch_up(const Take& take) {
  try {
    for (const DirectoryEntry& file : list_directory(folder_)) {
      if (file.path.extension() == ".segment") follow(file, take);
    }
  } catch (const DataError&) {
    // A folder that cannot be listed has nothing to show.
  }
}

void SegmentFollowers::follow(const DirectoryEntry& file, const Take& take) {
  const auto [place, is_new] = segments_.try_emplace(file.path);
  Followed& followed = place->second;
  try {
    if (is_new)
      followed = {.reader = std::make_unique<SegmentReader>(file.path, stream_), .at = kSegmentHeaderBytes};
  } catch (const DataError&) {
    return;  // none of ours: never looked at again
  }
  if (followed.reader == nullptr || file.size <= followed.at) return;
  for (const SegmentEntry& entry : followed.reader->follow(followed.at, file.size)) take(*followed.reader, entry);
}

}  // namespace headrace
