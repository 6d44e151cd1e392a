#include "headrace/cache/disk/segment_followers.h"

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_lock.h"

namespace headrace {
namespace {

// Runs a function that may fail without harm: on a read-only disk nothing is cleaned up.
template <typename Function>
void attempt(Function function) {
  try {
    function();
  } catch (const DataError&) {
  }
}

void tidy(const FoundSegment& found, const SegmentStream& stream) {
  const std::filesystem::path& path = found.reader->path();
  if (is_being_written(path)) return;
  attempt([&] {
    if (found.entries.empty()) return remove_file(path);
    write_file_atomically(index_path(path), encode_index(stream, found.entries.back().end(), found.entries),
                          Durability::kLater);
  });
}

}  // namespace

std::vector<FoundSegment> open_segments(const std::filesystem::path& folder, const SegmentStream& stream) {
  std::vector<FoundSegment> all;
  if (path_kind(folder) != PathKind::kDirectory) return all;
  for (const DirectoryEntry& entry : list_directory(folder)) {
    const std::filesystem::path kind = entry.path.extension();
    if (kind == ".tmp" && !is_being_written(entry.path)) attempt([&] { remove_file(entry.path); });
    if (kind != ".segment") continue;
    attempt([&] {
      FoundSegment found{.reader = std::make_unique<SegmentReader>(entry.path, stream), .entries = {}};
      SegmentReader::Contents contents = found.reader->contents();
      found.entries = std::move(contents.entries);
      if (contents.from == SegmentReader::Source::kScan) tidy(found, stream);
      all.push_back(std::move(found));
    });
  }
  return all;
}

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
    // A folder that cannot be listed counts as empty.
  }
}

void SegmentFollowers::follow(const DirectoryEntry& file, const Take& take) {
  const auto [place, is_new] = segments_.try_emplace(file.path);
  Followed& followed = place->second;
  try {
    if (is_new)
      followed = {.reader = std::make_unique<SegmentReader>(file.path, stream_), .at = kSegmentHeaderBytes};
  } catch (const DataError&) {
    return;  // not of this stream: never examined again
  }
  if (followed.reader == nullptr || file.size <= followed.at) return;
  for (const SegmentEntry& entry : followed.reader->follow(followed.at, file.size)) take(*followed.reader, entry);
}

}  // namespace headrace
