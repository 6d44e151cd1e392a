#include "headrace/cache/disk/segment_file.h"

#include <algorithm>
#include <array>
#include <random>

#include "headrace/cache/disk/segment_format.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_lock.h"
#include "headrace/devices/base/hash.h"

namespace headrace {
namespace {

constexpr std::size_t kSearchedAtOnce = std::size_t{1} << 16;
// The maximum bytes read of false entries, in multiples of the file's size. Beyond that, the scan gives up.
constexpr std::uint64_t kMaxWasted = 4;

std::filesystem::path new_path(const std::filesystem::path& folder) {
  make_folders(folder);
  std::random_device random;
  const std::uint64_t number = std::uint64_t{random()} << 32 | random();
  return folder / (to_hex(number) + ".segment");
}

}  // namespace

std::filesystem::path index_path(const std::filesystem::path& segment) {
  return std::filesystem::path(segment).replace_extension(".index");
}

SegmentReader::SegmentReader(const std::filesystem::path& path, const SegmentStream& stream)
    : stream_(stream), file_(File::open(path)) {
  std::array<std::byte, kSegmentHeaderBytes> header;
  file_.read_exact(0, header);
  if (is_segment_header(header, stream)) return;
  throw DataError(ErrorCode::kDataCorrupt, "is not a segment of this stream",
                  {.source = path.string(), .offset = 0}, "remove it: what it held is computed again");
}

SegmentReader::Contents SegmentReader::contents() const {
  const std::filesystem::path index = index_path(file_.path());
  if (path_kind(index) == PathKind::kFile) {
    try {
      if (auto entries = decode_index(read_whole_file(index), stream_, file_.size())) {
        return {.from = Source::kIndex, .entries = std::move(*entries)};
      }
    } catch (const DataError&) {
      // An index that cannot be read does not count.
    }
  }
  return {.from = Source::kScan, .entries = scan()};
}

bool SegmentReader::read_header(std::uint64_t at, std::span<std::byte> header) const noexcept {
  try {
    file_.read_exact(at, header);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::optional<SegmentEntry> SegmentReader::entry_at(std::uint64_t at, std::uint64_t size) const noexcept {
  std::array<std::byte, kEntryHeaderBytes> header;
  if (size < kEntryHeaderBytes || at > size - kEntryHeaderBytes || !read_header(at, header)) return {};
  const auto entry = decode_entry_header(header, at);
  if (!entry || entry->record >= stream_.records || entry->end() > size) return {};
  return entry;
}

std::vector<SegmentEntry> SegmentReader::follow(std::uint64_t& at, std::uint64_t size) const {
  std::vector<SegmentEntry> entries;
  while (const auto entry = entry_at(at, size)) {
    entries.push_back(*entry);
    at = entry->end();
  }
  return entries;
}

std::uint64_t SegmentReader::next_magic(std::uint64_t from) const {
  const auto magic = std::as_bytes(std::span(kEntryMagic));
  std::vector<std::byte> bytes(kSearchedAtOnce);
  try {
    while (from + kEntryHeaderBytes <= file_.size()) {
      const auto read = std::span(bytes).first(file_.read_some(from, bytes));
      const auto found = std::ranges::search(read, magic);
      if (!found.empty()) return from + static_cast<std::uint64_t>(found.begin() - read.begin());
      if (read.size() < magic.size()) break;
      from += read.size() - magic.size() + 1;  // it may straddle the end
    }
  } catch (const DataError&) {
    // An unreadable file has no entries.
  }
  return file_.size();
}

std::vector<SegmentEntry> SegmentReader::scan() const {
  std::vector<SegmentEntry> entries;
  std::vector<std::byte> scratch;
  std::uint64_t wasted = 0;
  for (std::uint64_t at = kSegmentHeaderBytes; at < file_.size() && wasted <= kMaxWasted * file_.size();) {
    const auto entry = entry_at(at, file_.size());
    if (entry && !read(*entry, scratch).empty()) {
      entries.push_back(*entry);
      at = entry->end();
    } else {
      wasted += entry ? entry->stored_bytes : 0;
      at = next_magic(at + 1);
    }
  }
  return entries;
}

std::span<const std::byte> SegmentReader::read(const SegmentEntry& entry,
                                               std::vector<std::byte>& scratch) const noexcept {
  try {
    // The stored bytes go after the space for the expanded sample.
    const std::size_t at = entry.codec == SampleCodec::kNone ? 0 : entry.sample_bytes;
    if (entry.codec == SampleCodec::kNone && entry.sample_bytes != entry.stored_bytes) return {};
    if (entry.end() > kMaxSegmentBytes || entry.sample_bytes > kMaxSampleBytes) return {};
    if (scratch.size() < at + entry.stored_bytes) scratch.resize(at + entry.stored_bytes);
    const std::span<std::byte> stored = std::span(scratch).subspan(at, entry.stored_bytes);
    file_.read_exact(entry.offset, stored);
    if (checksum_of(entry, stored, stream_.fingerprint) != entry.checksum) return {};
    const std::span<std::byte> sample = std::span(scratch).first(entry.sample_bytes);
    if (entry.codec == SampleCodec::kZstd && !SampleCompressor::expand(stored, sample)) return {};
    return sample;
  } catch (const std::exception&) {
    return {};
  }
}

bool SegmentReader::holds(const SegmentEntry& entry, std::vector<std::byte>& scratch) const {
  std::array<std::byte, kEntryHeaderBytes> header;
  if (entry.offset < kEntryHeaderBytes || !read_header(entry.offset - kEntryHeaderBytes, header)) return false;
  return decode_entry_header(header, entry.offset - kEntryHeaderBytes) == entry && !read(entry, scratch).empty();
}

SegmentWriter::SegmentWriter(const std::filesystem::path& folder, const SegmentStream& stream)
    : stream_(stream), file_(new_path(folder), encode_segment_header(stream)) {}

SegmentEntry SegmentWriter::append(SegmentEntry entry, std::span<const std::byte> stored) {
  entry.offset = size() + kEntryHeaderBytes;
  entry.stored_bytes = static_cast<std::uint32_t>(stored.size());
  entry.checksum = checksum_of(entry, stored, stream_.fingerprint);
  append_entry_header(entry, buffer_);
  buffer_.insert(buffer_.end(), stored.begin(), stored.end());
  entries_.push_back(entry);
  return entry;
}

void SegmentWriter::flush() {
  file_.append(buffer_);
  buffer_.clear();
}

void SegmentWriter::seal() {
  flush();
  write_file_atomically(index_path(file_.path()), encode_index(stream_, file_.size(), entries_),
                        Durability::kLater);
}

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
