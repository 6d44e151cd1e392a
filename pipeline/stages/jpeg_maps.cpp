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

const JpegMap* JpegMaps::find(std::uint64_t record, std::span<const std::byte> encoded, ImageDecoder& decoder,
                              std::unique_ptr<const JpegMap>& made) {
  const JpegMap* kept = record < maps_.size() ? maps_[record].load(std::memory_order_acquire) : nullptr;
  if (kept == &kHasNone) return nullptr;
  if (kept != nullptr && kept->content() == JpegMap::content_of(encoded)) return kept;
  made = decoder.map(encoded);
  if (kept != nullptr || record >= maps_.size()) return made.get();
  if (made == nullptr) {
    maps_[record].compare_exchange_strong(kept, &kHasNone, std::memory_order_release);
    return nullptr;
  }
  const JpegMap* fresh = made.get();
  keep(record, made);
  return fresh;
}

bool JpegMaps::charge(std::uint64_t bytes) noexcept {
  if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= most_bytes_ && budget_.try_charge(bytes))
    return true;
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

// Takes the map over where there is room and no other thread was first.
void JpegMaps::keep(std::uint64_t record, std::unique_ptr<const JpegMap>& map) noexcept {
  const std::uint64_t bytes = map->bytes();
  if (!charge(bytes)) return;
  const JpegMap* none = nullptr;
  if (maps_[record].compare_exchange_strong(none, map.get(), std::memory_order_release)) {
    map.release();
    return;
  }
  budget_.release(bytes);
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
}

}  // namespace headrace
