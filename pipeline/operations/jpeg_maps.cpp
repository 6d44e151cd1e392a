#include "headrace/pipeline/operations/jpeg_maps.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

std::uint64_t bytes_for_maps(const MemoryBudget& budget) {
  if (budget.limit() > 0) return budget.limit() / 8;
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) /
         16;
}

}  // namespace

KnownJpeg KnownJpeg::of(std::span<const std::byte> encoded, ImageDecoder& decoder) {
  KnownJpeg known;
  known.made = decoder.index(encoded);
  known.map = known.made.get();
  known.good = known.map != nullptr;
  known.has_none = known.map == nullptr;
  return known;
}

JpegMaps::JpegMaps(std::uint64_t records, MemoryBudget& budget)
    : budget_(budget), most_bytes_(bytes_for_maps(budget)) {
  constexpr std::uint64_t kPlace = sizeof(std::atomic<Kept>);
  if (records <= most_bytes_ / kPlace && charge(records * kPlace)) kept_ = decltype(kept_)(records);
}

JpegMaps::~JpegMaps() {
  for (const std::atomic<Kept>& kept : kept_) delete map_of(kept.load());
  budget_.release(bytes());
}

const JpegIndex* JpegMaps::map_of(Kept kept) noexcept {
  return (kept & kNoMap) != 0 ? nullptr : reinterpret_cast<const JpegIndex*>(kept);
}

// Of a good image without a map, by its bytes.
JpegMaps::Kept JpegMaps::good_mark(std::uint64_t content) noexcept { return std::max(content | kNoMap, Kept{3}); }

KnownJpeg JpegMaps::find(std::uint64_t record, std::span<const std::byte> encoded) const noexcept {
  const Kept kept = record < kept_.size() ? kept_[record].load(std::memory_order_acquire) : 0;
  if (kept == 0) return {};
  if (kept == kUnmappable) return {.has_none = true};
  const std::uint64_t content = JpegIndex::content_of(encoded);
  const JpegIndex* map = map_of(kept);
  if (map != nullptr && map->content() == content) return {.map = map, .good = true};
  return {.good = map == nullptr && kept == good_mark(content)};
}

KnownJpeg JpegMaps::make(std::uint64_t record, std::span<const std::byte> encoded, ImageDecoder& decoder) {
  KnownJpeg known = KnownJpeg::of(encoded, decoder);
  if (record < kept_.size()) keep(record, known);
  return known;
}

void JpegMaps::keep_good(std::uint64_t record, std::span<const std::byte> encoded) noexcept {
  Kept before = 0;
  if (record >= kept_.size()) return;
  kept_[record].compare_exchange_strong(before, good_mark(JpegIndex::content_of(encoded)),
                                        std::memory_order_acq_rel);
}

bool JpegMaps::charge(std::uint64_t bytes) noexcept {
  if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= most_bytes_ && budget_.try_charge(bytes))
    return true;
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

// From now on, unless the record has a map.
void JpegMaps::keep(std::uint64_t record, KnownJpeg& known) noexcept {
  if (known.map == nullptr) {
    put(record, kUnmappable);
    return;
  }
  const std::uint64_t bytes = known.map->bytes();
  if (full_.load(std::memory_order_relaxed) || !charge(bytes)) {
    full_.store(true, std::memory_order_relaxed);
    put(record, good_mark(known.map->content()));
  } else if (put(record, reinterpret_cast<Kept>(known.map))) {
    known.made.release();
  } else {
    budget_.release(bytes);
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
}

// In place of anything but a map, which others may be using.
bool JpegMaps::put(std::uint64_t record, Kept fresh) noexcept {
  Kept before = kept_[record].load(std::memory_order_acquire);
  while (before == 0 || (before & kNoMap) != 0) {
    if (kept_[record].compare_exchange_weak(before, fresh, std::memory_order_acq_rel)) return true;
  }
  return false;
}

}  // namespace headrace
