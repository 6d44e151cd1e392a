#include "headrace/pipeline/operations/machinery/jpeg_indexes.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

std::uint64_t bytes_for_indexes(const MemoryBudget& budget) {
  if (budget.limit() > 0) return budget.limit() / 8;
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) /
         16;
}

}  // namespace

JpegIndexes::JpegIndexes(std::uint64_t records, MemoryBudget& budget)
    : budget_(budget), max_bytes_(bytes_for_indexes(budget)) {
  constexpr std::uint64_t kPlace = sizeof(std::atomic<Kept>);
  if (records <= max_bytes_ / kPlace && charge(records * kPlace)) kept_ = decltype(kept_)(records);
}

JpegIndexes::~JpegIndexes() {
  for (const std::atomic<Kept>& kept : kept_) delete index_of(kept.load());
  budget_.release(bytes());
}

const JpegIndex* JpegIndexes::index_of(Kept kept) noexcept {
  return (kept & kNoIndex) != 0 ? nullptr : reinterpret_cast<const JpegIndex*>(kept);
}

// Returns the mark of a good image without an index, by its bytes.
JpegIndexes::Kept JpegIndexes::good_mark(std::uint64_t content) noexcept { return content | kNoIndex; }

KnownJpeg JpegIndexes::find(std::uint64_t record, std::span<const std::byte> encoded) const noexcept {
  const Kept kept = record < kept_.size() ? kept_[record].load(std::memory_order_acquire) : 0;
  if (kept == 0) return {};
  const std::uint64_t content = JpegIndex::content_of(encoded);
  const JpegIndex* index = index_of(kept);
  if (index != nullptr && index->content() == content) return {.index = index, .good = true};
  return {.good = index == nullptr && kept == good_mark(content)};
}

void JpegIndexes::keep_good(std::uint64_t record, std::span<const std::byte> encoded) noexcept {
  Kept before = 0;
  if (record >= kept_.size()) return;
  kept_[record].compare_exchange_strong(before, good_mark(JpegIndex::content_of(encoded)),
                                        std::memory_order_acq_rel);
}

bool JpegIndexes::charge(std::uint64_t bytes) noexcept {
  if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes <= max_bytes_ && budget_.try_charge(bytes))
    return true;
  bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

void JpegIndexes::keep(std::uint64_t record, std::unique_ptr<const JpegIndex> index) noexcept {
  if (record >= kept_.size()) return;
  const std::uint64_t bytes = index->bytes();
  if (full_.load(std::memory_order_relaxed) || !charge(bytes)) {
    full_.store(true, std::memory_order_relaxed);
    put(record, good_mark(index->content()));
  } else if (put(record, reinterpret_cast<Kept>(index.get()))) {
    static_cast<void>(index.release());  // kept_ owns it
  } else {
    budget_.release(bytes);
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
}

// Replaces any entry except an index, which others may be using.
bool JpegIndexes::put(std::uint64_t record, Kept fresh) noexcept {
  Kept before = kept_[record].load(std::memory_order_acquire);
  while (before == 0 || (before & kNoIndex) != 0) {
    if (kept_[record].compare_exchange_weak(before, fresh, std::memory_order_acq_rel)) return true;
  }
  return false;
}

}  // namespace headrace
