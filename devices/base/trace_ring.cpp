#include "headrace/devices/base/trace_ring.h"

#include <algorithm>
#include <utility>

namespace headrace {

TraceRing::TraceRing(std::string thread, std::size_t capacity)
    : thread_(std::move(thread)), capacity_(std::max<std::size_t>(1, capacity)), cells_(new Cell[capacity_ + 1]) {}

// A reader that sees any of these stores sees `added_` as it was before them, and so knows that the cell is
// being overwritten.
void TraceRing::add(const TraceSpan& span) noexcept {
  const std::uint64_t index = added_.load(std::memory_order_relaxed);
  Cell& cell = cells_[index % (capacity_ + 1)];
  cell.name.store(span.name, std::memory_order_release);
  cell.begin.store(span.begin_ns, std::memory_order_release);
  cell.end.store(span.end_ns, std::memory_order_release);
  cell.batch.store(span.batch, std::memory_order_release);
  cell.items.store(span.items, std::memory_order_release);
  added_.store(index + 1, std::memory_order_release);
}

std::vector<TraceSpan> TraceRing::spans() const {
  const std::uint64_t added = added_.load(std::memory_order_acquire);
  const std::uint64_t first = added > capacity_ ? added - capacity_ : 0;
  std::vector<TraceSpan> spans;
  for (std::uint64_t index = first; index < added; ++index) {
    const Cell& cell = cells_[index % (capacity_ + 1)];
    spans.push_back({.name = cell.name.load(std::memory_order_acquire),
                     .begin_ns = cell.begin.load(std::memory_order_acquire),
                     .end_ns = cell.end.load(std::memory_order_acquire),
                     .batch = cell.batch.load(std::memory_order_acquire),
                     .items = cell.items.load(std::memory_order_acquire)});
  }
  // One cell more than spans are kept: that of span n - capacity - 1 is overwritten while span n is added.
  const std::uint64_t since = added_.load(std::memory_order_acquire);
  const std::uint64_t whole = since > capacity_ ? since - capacity_ : 0;
  if (whole > first) {
    spans.erase(spans.begin(), spans.begin() + static_cast<std::ptrdiff_t>(std::min(whole, added) - first));
  }
  return spans;
}

std::uint64_t TraceRing::dropped() const noexcept {
  const std::uint64_t added = added_.load(std::memory_order_acquire);
  return added > capacity_ ? added - capacity_ : 0;
}

}  // namespace headrace
