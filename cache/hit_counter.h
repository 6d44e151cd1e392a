// Hits and misses of many threads, counted without their sharing a cache line.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "headrace/devices/base/thread_number.h"

namespace headrace {

class HitCounter {
 public:
  void hit() noexcept { count(&Tally::hits); }
  void miss() noexcept { count(&Tally::misses); }

  std::uint64_t hits() const noexcept { return sum(&Tally::hits); }
  std::uint64_t misses() const noexcept { return sum(&Tally::misses); }

 private:
  static constexpr std::size_t kCacheLine = 64, kTallies = 64;

  // A thread's; the last is of all threads beyond.
  struct alignas(kCacheLine) Tally {
    std::atomic<std::uint64_t> hits{0};
    std::atomic<std::uint64_t> misses{0};
  };

  // A thread that has a tally for itself adds without locking the bus: that would wait for all that the thread has
  // written so far, past the caches too.
  void count(std::atomic<std::uint64_t> Tally::*of) noexcept {
    const std::size_t number = thread_number();
    if (number < kTallies - 1) {
      std::atomic<std::uint64_t>& mine = tallies_[number].*of;
      mine.store(mine.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    } else {
      (tallies_.back().*of).fetch_add(1, std::memory_order_relaxed);
    }
  }

  std::uint64_t sum(std::atomic<std::uint64_t> Tally::*of) const noexcept {
    std::uint64_t sum = 0;
    for (const Tally& tally : tallies_) sum += (tally.*of).load(std::memory_order_relaxed);
    return sum;
  }

  std::array<Tally, kTallies> tallies_;
};

}  // namespace headrace
