// Hits and misses of many threads, counted without their sharing a cache line.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace headrace {

class HitCounter {
 public:
  void hit() noexcept { mine().hits.fetch_add(1, std::memory_order_relaxed); }
  void miss() noexcept { mine().misses.fetch_add(1, std::memory_order_relaxed); }

  std::uint64_t hits() const noexcept { return sum(&Tally::hits); }
  std::uint64_t misses() const noexcept { return sum(&Tally::misses); }

 private:
  static constexpr std::size_t kCacheLine = 64, kTallies = 32;

  // Those of some of the threads.
  struct alignas(kCacheLine) Tally {
    std::atomic<std::uint64_t> hits{0};
    std::atomic<std::uint64_t> misses{0};
  };

  Tally& mine() noexcept {
    static std::atomic<std::size_t> threads{0};
    thread_local const std::size_t index = threads.fetch_add(1, std::memory_order_relaxed) % kTallies;
    return tallies_[index];
  }

  std::uint64_t sum(std::atomic<std::uint64_t> Tally::*of) const noexcept {
    std::uint64_t sum = 0;
    for (const Tally& tally : tallies_) sum += (tally.*of).load(std::memory_order_relaxed);
    return sum;
  }

  std::array<Tally, kTallies> tallies_;
};

}  // namespace headrace
