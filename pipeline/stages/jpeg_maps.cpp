#include "headrace/pipeline/stages/jpeg_maps.h"

#include <unistd.h>

#include <utility>

namespace headrace {
namespace {

const JpegMap kHasNone;  // stands for the map of an image that has none

std::uint64_t bytes_for_maps(const MemoryBudget& budget) {
  if (budget.limit() > 0) return budget.limit() / 8;
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) /
         16;
}

}  // namespace

JpegMaps::JpegMaps(std::uint64_t records, MemoryBudget& budget)
    : budget_(budget), most_bytes_(bytes_for_maps(budget)) {
  constexpr std::uint64_t kPlace = sizeof(std::atomic<const JpegMap*>);
  if (records <= most_bytes_ / kPlace && charge(records * kPlace)) maps_ = decltype(maps_)(records);
}

JpegMaps::~JpegMaps() {
  for (const std::atomic<const JpegMap*>& map : maps_) {
    if (const JpegMap* kept = map.load(); kept != &kHasNone) delete kept;
  }
  budget_.release(bytes());
}

const JpegMap* JpegMaps::find(std::uint64_t record, std::span<const std::byte> encoded, ImageDecoder& decoder) {
  if (record >= maps_.size()) return nullptr;
  const JpegMap* kept = maps_[record].load(std::memory_order_acquire);
  if (kept == nullptr && !full_.load(std::memory_order_relaxed)) kept = keep(record, decoder.map(encoded));
  if (kept == nullptr || kept == &kHasNone) return nullptr;
  return kept->content() == JpegMap::content_of(encoded) ? kept : nullptr;
}

bool JpegMaps::charge(std::uint64_t bytes) noexcept {
  if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= most_bytes_ && budget_.try_charge(bytes))
    return true;
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

// What the record has from now on; another thread may have been first.
const JpegMap* JpegMaps::keep(std::uint64_t record, std::unique_ptr<const JpegMap> map) noexcept {
  const std::uint64_t bytes = map != nullptr ? map->bytes() : 0;
  if (!charge(bytes)) {
    full_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  const JpegMap* fresh = map != nullptr ? map.get() : &kHasNone;
  const JpegMap* kept = nullptr;
  if (maps_[record].compare_exchange_strong(kept, fresh, std::memory_order_acq_rel)) {
    map.release();
    return fresh;
  }
  budget_.release(bytes);
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return kept;
}

}  // namespace headrace
