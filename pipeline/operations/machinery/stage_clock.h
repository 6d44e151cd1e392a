// The cost of a stage, counted by the one thread that runs it and readable by any.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "headrace/pipeline/stats.h"

namespace headrace {

// Adds to a counter that only the owning thread writes: a load and a store, never a locked instruction.
inline void add_alone(std::atomic<std::uint64_t>& counter, std::uint64_t amount) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
}

// In its own cache line: threads do not slow each other down by counting.
class alignas(64) StageClock {
 public:
  void add(std::uint64_t items, std::uint64_t ns, std::uint64_t decoded_bytes = 0) noexcept {
    add_alone(items_, items);
    add_alone(ns_, ns);
    if (decoded_bytes > 0) add_alone(decoded_bytes_, decoded_bytes);
  }
  std::uint64_t items() const noexcept { return items_.load(std::memory_order_relaxed); }
  std::uint64_t ns() const noexcept { return ns_.load(std::memory_order_relaxed); }
  std::uint64_t decoded_bytes() const noexcept { return decoded_bytes_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> items_{0}, ns_{0}, decoded_bytes_{0};
};

class WaitClock {
 public:
  void add(std::uint64_t ns) noexcept {
    add_alone(counts_[WaitHistogram::bucket_of(ns)], 1);
    add_alone(ns_, ns);
  }
  std::uint64_t ns() const noexcept { return ns_.load(std::memory_order_relaxed); }
  void read_into(WaitHistogram& histogram) const noexcept {
    for (std::size_t i = 0; i < WaitHistogram::kBuckets; ++i) {
      histogram.add(i, counts_[i].load(std::memory_order_relaxed));
    }
  }

 private:
  std::array<std::atomic<std::uint64_t>, WaitHistogram::kBuckets> counts_{};
  std::atomic<std::uint64_t> ns_{0};
};

}  // namespace headrace
