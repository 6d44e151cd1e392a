#include "headrace/devices/base/remote/remote_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "headrace/devices/base/hash.h"

namespace headrace::remote {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = kKiB * kKiB;
constexpr std::uint64_t kMinGap = 4 * kKiB, kMaxGap = kMiB;
// How far a reader may stay behind another one and still read in order with it.
constexpr std::uint64_t kSlack = 2 * kMiB;
// Bytes ahead of reads in order: doubled as they go on, to what a fast and distant server needs.
constexpr std::uint64_t kMinWindow = 128 * kKiB, kMaxFirstWindow = 4 * kMiB, kMaxWindow = 32 * kMiB;
constexpr std::uint64_t kMinChunk = 16 * kKiB, kUsualChunk = 128 * kKiB, kMaxChunk = kMiB;
constexpr std::uint64_t kChunks = 8;         // in a window
constexpr std::uint64_t kInFlightAhead = 4;  // windows of all readers, over what is in flight
// The first bytes of a file, asked for when its format is: enough for a small one.
constexpr std::uint64_t kFirstBytes = 64 * kKiB;
// Announced ranges so close to each other are one request, up to that size.
constexpr std::uint64_t kNear = 32 * kKiB, kMaxTogether = kMiB / 2;

thread_local int looks = 0;  // of this thread

// Files that are being read forwards, with gaps or not.
std::atomic<int> forward_readers{0};

std::uint64_t forward_reader_count() {
  return static_cast<std::uint64_t>(std::max(1, forward_readers.load(std::memory_order_relaxed)));
}

// Returns a reader's part of something that all who read forwards share.
std::uint64_t share_of(std::uint64_t bytes) { return bytes / forward_reader_count(); }

// Returns what reads in order may skip: fetching it takes less time than another request, while all who read
// forwards share the line.
std::uint64_t max_gap() {
  const std::uint64_t line = http_counters().bandwidth_delay.load(std::memory_order_relaxed);
  if (line == 0) return kMaxGap;
  return std::clamp(share_of(line), kMinGap, kMaxGap);
}

// Returns the first window of a reader: half of what should be in flight, but where others read forwards, too, not
// more than a gap.
std::uint64_t first_window() {
  const std::uint64_t half = http_counters().in_flight_target.load(std::memory_order_relaxed) / 2, gap = max_gap();
  return gap < kMinWindow ? std::max(gap, kMinChunk) : std::clamp(half, kMinWindow, kMaxFirstWindow);
}

}  // namespace

Look::Look() noexcept { ++looks; }
Look::~Look() { --looks; }
bool is_looking() noexcept { return looks > 0; }

void RemoteFile::name_for_cache() {
  if (FetchCache::of_process() == nullptr || !version_->is_versioned()) return;
  const std::string version =
      version_->url + "\n" + (version_->etag.empty() ? version_->last_modified : version_->etag);
  named_ = {.key = xxh3(version, version_->size), .check = xxh3(version, ~version_->size), .size = kPieceBytes};
}

std::optional<RemoteFile::Piece> RemoteFile::piece_at(std::uint64_t offset) const {
  FetchCache* const cache = named_.size == 0 ? nullptr : FetchCache::of_process();
  if (cache == nullptr) return std::nullopt;
  const std::uint64_t number = offset / kPieceBytes, begin = number * kPieceBytes;
  const auto bytes = std::as_bytes(std::span(&number, 1));
  Piece piece{.begin = begin, .end = std::min(version_->size, begin + kPieceBytes), .cache = cache};
  piece.name = {.key = std::max<std::uint64_t>(xxh3(bytes, named_.key), 1),
                .check = xxh3(bytes, named_.check),
                .size = piece.end - begin};
  piece.status = cache->look(piece.name);
  return piece.status == PieceStatus::kNoRoom ? std::nullopt : std::optional(piece);
}

RemoteFile::Entries::iterator RemoteFile::covering(std::uint64_t offset) {
  auto found = entries_.upper_bound(offset);
  if (found == entries_.begin()) return entries_.end();
  --found;
  if (offset >= found->second.range->end_offset()) return entries_.end();
  if (!found->second.range->is_stale()) return found;
  entries_.erase(found);
  return entries_.end();
}

void RemoteFile::add(std::uint64_t begin, std::uint64_t end, std::uint64_t needed) {
  entries_.insert_or_assign(
      begin, Entry{.range = std::make_shared<FetchedRange>(version_, begin, end), .needed = needed});
}

RemoteFile::Entry& RemoteFile::add(const Piece& piece, std::uint64_t needed) {
  // Ranges within the piece would hide it from covering().
  for (auto at = entries_.lower_bound(piece.begin); at != entries_.end() && at->first < piece.end;) {
    const bool within = at->second.range->end_offset() <= piece.end;
    if (within) at->second.range->drop();
    at = within ? entries_.erase(at) : std::next(at);
  }
  auto range = std::make_shared<FetchedRange>(version_, piece.begin, *piece.cache, piece.name);
  return entries_.insert_or_assign(piece.begin, Entry{.range = std::move(range), .needed = needed}).first->second;
}

bool RemoteFile::goes_on(std::uint64_t offset) const noexcept {
  return offset + kSlack >= last_end_ && offset <= std::max(last_end_, stream_end_) + max_gap();
}

void RemoteFile::go_forward(bool forward) noexcept {
  if (forward != forward_) forward_readers += forward ? 1 : -1;
  forward_ = forward;
}

void RemoteFile::drop_behind(std::uint64_t offset) {
  for (auto at = entries_.begin(); at != entries_.end() && at->first < offset;) {
    const bool behind = at->second.streamed && at->second.range->end_offset() + kSlack <= offset;
    if (behind) at->second.range->drop();
    at = behind ? entries_.erase(at) : std::next(at);
  }
}

// Asks for what follows, as far as the window and the memory reach. Deadlines assume that all forward readers
// advance at the same rate.
// `waits`: what is needed is not there. `bytes_before`: of other files, read before these.
void RemoteFile::stream_from(std::uint64_t offset, bool waits, std::uint64_t bytes_before) {
  drop_behind(offset);
  stream_end_ = std::max(stream_end_, offset);
  // What one reader has ahead leaves room for the others, and comes before what they need now: no more than keeps
  // the line busy.
  const std::uint64_t line = kInFlightAhead * http_counters().in_flight_target.load(std::memory_order_relaxed);
  const std::uint64_t first = first_window();
  const std::uint64_t most = std::clamp(std::min(share_of(window_bytes()), share_of(line)), first, kMaxWindow);
  window_ = std::min(waits ? std::max(2 * window_, first) : window_, most);
  const std::uint64_t chunk =
      std::clamp(window_ / kChunks, std::clamp(window_, kMinChunk, kUsualChunk), kMaxChunk);
  const std::uint64_t until = std::min(version_->size, offset + window_);
  const auto due = [&] {
    return due_after(bytes_before + forward_reader_count() * (std::max(stream_end_, offset) - offset));
  };
  while (stream_end_ < until) {
    if (const auto there = covering(stream_end_); there != entries_.end()) {
      stream_end_ = there->second.range->end_offset();
      continue;
    }
    if (const std::optional<Piece> piece = piece_at(stream_end_)) {
      if (stream_end_ > offset && !has_room(piece->name.size)) return;
      Entry& entry = add(*piece, piece->name.size);
      entry.streamed = true;
      entry.range->start(due());
      stream_end_ = piece->end;
      continue;
    }
    std::uint64_t end = std::min(version_->size, stream_end_ + chunk);
    if (named_.size != 0) end = std::min(end, (stream_end_ / kPieceBytes + 1) * kPieceBytes);
    if (stream_end_ > offset && !has_room(end - stream_end_)) return;
    add(stream_end_, end, end - stream_end_);
    entries_[stream_end_].streamed = true;
    entries_[stream_end_].range->start(due());
    stream_end_ = end;
  }
}

void RemoteFile::will_read_from(std::uint64_t offset, std::uint64_t bytes_before) {
  const std::lock_guard lock(mutex_);
  go_forward(true);
  last_end_ = head_ == nullptr ? offset : std::max<std::uint64_t>(offset, head_->size());
  stream_from(last_end_, /*waits=*/true, bytes_before);
}

std::shared_ptr<FetchedRange> RemoteFile::range_for(std::uint64_t offset, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  auto found = covering(offset);
  const bool announced = found != entries_.end() && !found->second.streamed;
  if (!announced) {
    go_forward(offset + kSlack >= last_end_);
    const bool in_order = !looks_ && goes_on(offset);
    const std::optional<Piece> piece =
        found == entries_.end() && (window_ == 0 || !in_order) ? piece_at(offset) : std::nullopt;
    if (!in_order) window_ = stream_end_ = 0;
    const bool is_stored = piece && piece->status == PieceStatus::kStored;
    if (is_stored || (piece && !in_order && piece->status == PieceStatus::kPending)) {
      add(*piece, piece->name.size).streamed = true;
    } else if (in_order) {
      if (found == entries_.end()) stream_end_ = std::min(stream_end_, offset);
      const bool there = found != entries_.end() && found->second.range->has_until(offset + size);
      stream_from(offset, !there, 0);
    } else if (found == entries_.end()) {
      // It puts nothing into the cache: it may be the header of an archive's member, after which many come.
      const std::uint64_t count = looks_ ? std::min(version_->size - offset, std::max(size, kMinChunk)) : size;
      add(offset, offset + count, count);
    }
    found = covering(offset);
  }
  last_end_ = goes_on(offset) ? std::max(last_end_, offset + size) : offset + size;
  ++found->second.range->readers;
  return found->second.range;
}

void RemoteFile::note_used(const std::shared_ptr<FetchedRange>& range, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(range->begin_offset());
  if (found == entries_.end() || found->second.range != range) return;
  Entry& entry = found->second;
  const bool first = entry.used == 0;
  entry.used += bytes;
  if (!range->is_cached()) {
    if (entry.used >= entry.needed) entries_.erase(found);
    return;
  }
  // It can be read again: the latest ones are held, since reads are often shorter than a piece.
  if (!first) return;
  std::uint64_t& oldest = read_[latest_read_++ % read_.size()];
  const std::uint64_t before = std::exchange(oldest, range->begin_offset());
  const auto old = entries_.find(before);
  if (before != oldest && old != entries_.end() && old->second.range->is_cached()) entries_.erase(old);
}

std::shared_ptr<const RemoteFile::Bytes> RemoteFile::head_for(std::uint64_t offset, std::size_t size) {
  {
    const std::lock_guard lock(mutex_);
    if (head_ != nullptr || offset + size > kFirstBytes || covering(offset) != entries_.end()) return head_;
    const std::optional<Piece> piece = piece_at(offset);
    if (piece && piece->status != PieceStatus::kFree) return nullptr;
  }
  auto head = std::make_shared<Bytes>(static_cast<std::size_t>(std::min(version_->size, kFirstBytes)));
  std::make_shared<FetchedRange>(version_, 0, head->size())->read(0, *head);
  note_head(*version_, *head);
  const std::lock_guard lock(mutex_);
  return head_ = std::move(head);
}

std::size_t RemoteFile::read_some(std::uint64_t offset, std::span<std::byte> into) {
  if (offset >= version_->size || into.empty()) return 0;
  auto count = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), version_->size - offset));
  if (const auto head = head_for(offset, count); head != nullptr && offset < head->size()) {
    count = std::min(count, head->size() - static_cast<std::size_t>(offset));
    std::memcpy(into.data(), head->data() + offset, count);
    const std::lock_guard lock(mutex_);
    last_end_ = offset + count;
    return count;
  }
  while (true) {
    const std::shared_ptr<FetchedRange> range = range_for(offset, count);
    count = static_cast<std::size_t>(std::min<std::uint64_t>(count, range->end_offset() - offset));
    struct Leave {
      FetchedRange& range;
      ~Leave() { --range.readers; }
    };
    const Leave leave{*range};
    if (range->read(offset, into.first(count))) {
      note_used(range, count);
      return count;
    }
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(range->begin_offset());
    if (found != entries_.end() && found->second.range == range) entries_.erase(found);
  }
}

// Adds the pieces of the cache that hold some of the extents, and returns the extents without them.
std::vector<ByteExtent> RemoteFile::without_pieces(std::vector<ByteExtent> extents,
                                                   std::vector<std::shared_ptr<FetchedRange>>& added) {
  if (named_.size == 0) return extents;
  std::vector<ByteExtent> rest;
  for (const ByteExtent& extent : extents) {
    const std::uint64_t end = std::min(extent.offset + extent.size, version_->size);
    std::uint64_t from = extent.offset;  // of what lies in no piece
    const auto put = [&](std::uint64_t until) {
      if (until <= from) return;
      const std::uint64_t size = until - from;
      const double share = static_cast<double>(size) / static_cast<double>(extent.size);
      rest.push_back({.offset = from,
                      .size = size,
                      .used = static_cast<std::uint64_t>(share * static_cast<double>(extent.used))});
    };
    for (std::uint64_t at = extent.offset; at < end;) {
      const std::uint64_t until = std::min(end, (at / kPieceBytes + 1) * kPieceBytes);
      if (const std::optional<Piece> piece = piece_at(at)) {
        put(at);
        from = until;
        const auto there = entries_.find(piece->begin);
        if (there != entries_.end() && there->second.range->end_offset() == piece->end) {
          there->second.needed += until - at;
        } else {
          added.push_back(add(*piece, until - at).range);
        }
      }
      at = until;
    }
    put(end);
  }
  return rest;
}

void RemoteFile::will_read(std::span<const ByteExtent> extents) {
  if (extents.empty()) return drop_all();
  std::vector<ByteExtent> sorted(extents.begin(), extents.end());
  std::ranges::sort(sorted, {}, &ByteExtent::offset);
  std::vector<std::shared_ptr<FetchedRange>> added;
  {
    const std::lock_guard lock(mutex_);
    sorted = without_pieces(std::move(sorted), added);
    const std::uint64_t head = head_ == nullptr ? 0 : head_->size();
    std::uint64_t begin = 0, end = 0, needed = 0;
    const auto put = [&] {
      if (end == begin) return;
      add(begin, end, needed);
      added.push_back(entries_[begin].range);
    };
    for (const ByteExtent& extent : sorted) {
      const std::uint64_t last = std::min(extent.offset + extent.size, version_->size);
      const std::uint64_t uses = extent.used == 0 ? extent.size : extent.used;
      if (extent.size == 0 || last <= std::max<std::uint64_t>(extent.offset, head)) continue;
      if (const auto there = covering(extent.offset);
          there != entries_.end() && there->second.range->end_offset() >= last) {
        if (!there->second.streamed)
          there->second.needed += uses;  // of an earlier announcement, for other records too
        continue;
      }
      const bool joins = end > begin && extent.offset <= end + kNear && last - begin <= kMaxTogether;
      if (!joins) {
        put();
        begin = extent.offset;
        end = begin;
        needed = 0;
      }
      end = std::max(end, last);
      needed += uses;
    }
    put();
  }
  for (const auto& range : added) range->start_when_there_is_room();
}

void RemoteFile::drop_all() noexcept {
  Entries dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(entries_);
    window_ = stream_end_ = 0;
  }
  // Whoever found one of them before is counted by now.
  for (const auto& [begin, entry] : dropped) entry.range->drop();
  if (!dropped.empty()) wake_client();
}

}  // namespace headrace::remote
