#include "headrace/devices/base/remote/remote_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace headrace::remote {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = kKiB * kKiB;
constexpr std::uint64_t kMinGap = 4 * kKiB, kMaxGap = kMiB;
// How far a reader may stay behind another one and still read in order with it.
constexpr std::uint64_t kSlack = 2 * kMiB;
// Bytes ahead of reads in order: doubled as they go on, to what a fast and distant server needs.
constexpr std::uint64_t kMinWindow = 128 * kKiB, kMaxFirstWindow = 4 * kMiB, kMaxWindow = 32 * kMiB;
constexpr std::uint64_t kMinChunk = 16 * kKiB, kUsualChunk = 128 * kKiB, kMaxChunk = kMiB;
constexpr std::uint64_t kChunks = 8;  // in a window
// The first bytes of a file, asked for when its format is: enough for a small one.
constexpr std::uint64_t kFirstBytes = 64 * kKiB;
// Announced ranges so close to each other are one request, up to that size.
constexpr std::uint64_t kNear = 32 * kKiB, kMaxTogether = kMiB / 2;

// Files that are being read forwards, with gaps or not.
std::atomic<int> forward_readers{0};

// Returns what reads in order may skip: fetching it takes less time than another request, while all who read
// forwards share the line.
std::uint64_t max_gap() {
  const std::uint64_t line = http_counters().bandwidth_delay.load(std::memory_order_relaxed);
  if (line == 0) return kMaxGap;
  const auto readers = static_cast<std::uint64_t>(std::max(1, forward_readers.load(std::memory_order_relaxed)));
  return std::clamp(line / readers, kMinGap, kMaxGap);
}

// Returns the first window of a reader: half of what should be in flight, but where others read forwards, too, not
// more than a gap.
std::uint64_t first_window() {
  const std::uint64_t half = http_counters().in_flight_target.load(std::memory_order_relaxed) / 2, gap = max_gap();
  return gap < kMinWindow ? std::max(gap, kMinChunk) : std::clamp(half, kMinWindow, kMaxFirstWindow);
}

}  // namespace

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

bool RemoteFile::goes_on(std::uint64_t offset) const noexcept {
  return offset + kSlack >= last_end_ && offset <= std::max(last_end_, stream_end_) + max_gap();
}

void RemoteFile::go_forward(bool forward) noexcept {
  if (forward != forward_) forward_readers += forward ? 1 : -1;
  forward_ = forward;
}

void RemoteFile::drop(const Entry& entry) noexcept {
  if (entry.range->readers.load() == 0) entry.range->cancel();
}

void RemoteFile::drop_behind(std::uint64_t offset) {
  for (auto at = entries_.begin(); at != entries_.end() && at->first < offset;) {
    const bool behind = at->second.streamed && at->second.range->end_offset() + kSlack <= offset;
    if (behind) drop(at->second);
    at = behind ? entries_.erase(at) : std::next(at);
  }
}

// Asks for what follows, as far as the window and the memory reach.
// `waits`: what is needed is not there.
void RemoteFile::stream_from(std::uint64_t offset, bool waits) {
  drop_behind(offset);
  stream_end_ = std::max(stream_end_, offset);
  if (waits) window_ = std::clamp(2 * window_, first_window(), kMaxWindow);
  const std::uint64_t chunk =
      std::clamp(window_ / kChunks, std::clamp(window_, kMinChunk, kUsualChunk), kMaxChunk);
  const std::uint64_t until = std::min(version_->size, offset + window_);
  while (stream_end_ < until) {
    if (const auto there = covering(stream_end_); there != entries_.end()) {
      stream_end_ = there->second.range->end_offset();
      continue;
    }
    const std::uint64_t end = std::min(version_->size, stream_end_ + chunk);
    if (stream_end_ > offset && !has_room(end - stream_end_)) return;
    add(stream_end_, end, end - stream_end_);
    entries_[stream_end_].streamed = true;
    entries_[stream_end_].range->start(stream_end_ == offset);
    stream_end_ = end;
  }
}

std::shared_ptr<FetchedRange> RemoteFile::range_for(std::uint64_t offset, std::uint64_t size) {
  const std::lock_guard lock(mutex_);
  auto found = covering(offset);
  const bool announced = found != entries_.end() && !found->second.streamed;
  if (!announced) {
    go_forward(offset + kSlack >= last_end_);
    if (goes_on(offset)) {
      if (found == entries_.end()) stream_end_ = std::min(stream_end_, offset);
      const bool there = found != entries_.end() && found->second.range->has_until(offset + size);
      stream_from(offset, !there);
    } else {
      window_ = stream_end_ = 0;
      if (found == entries_.end()) add(offset, offset + size, size);
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
  found->second.used += bytes;
  if (found->second.used >= found->second.needed) entries_.erase(found);
}

std::shared_ptr<const RemoteFile::Bytes> RemoteFile::head_for(std::uint64_t offset, std::size_t size) {
  {
    const std::lock_guard lock(mutex_);
    if (head_ != nullptr || offset + size > kFirstBytes || covering(offset) != entries_.end()) return head_;
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
  const std::shared_ptr<FetchedRange> range = range_for(offset, count);
  count = static_cast<std::size_t>(std::min<std::uint64_t>(count, range->end_offset() - offset));
  struct Leave {
    FetchedRange& range;
    ~Leave() { --range.readers; }
  };
  const Leave leave{*range};
  range->read(offset, into.first(count));
  note_used(range, count);
  return count;
}

void RemoteFile::will_read(std::span<const ByteExtent> extents) {
  if (extents.empty()) return drop_all();
  std::vector<ByteExtent> sorted(extents.begin(), extents.end());
  std::ranges::sort(sorted, {}, &ByteExtent::offset);
  std::vector<std::shared_ptr<FetchedRange>> added;
  {
    const std::lock_guard lock(mutex_);
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
  for (const auto& [begin, entry] : dropped) drop(entry);
  if (!dropped.empty()) wake_client();
}

}  // namespace headrace::remote
