// The table of a cache, one entry per record of the source, and what it counts.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/sizes.h"

namespace headrace {

// The table of a cache: one entry per record of the source, stored or not.

// Throws ConfigError if the machine's memory could not hold it.
template <typename Entry>
std::unique_ptr<Entry[]> make_record_table(std::uint64_t records) {
  const auto bytes = checked_product({records, sizeof(Entry)});
  if (!bytes || *bytes > machine_memory_bytes()) {
    throw ConfigError("a cache of " + std::to_string(records) + " records needs " + std::to_string(sizeof(Entry)) +
                          " bytes of memory for each; the machine has " + std::to_string(machine_memory_bytes()),
                      "run without a cache, or on a part of the data");
  }
  return std::make_unique<Entry[]>(records);
}

// Counts hits and misses of many threads without sharing a cache line among them.

// Returns the calling thread's number: the lowest that no living thread had at its first call. After the thread
// ends, another may get the number and then sees all that this one wrote.
std::size_t thread_number() noexcept;

class HitCounter {
 public:
  void hit() noexcept { count(&Tally::hits); }
  void miss() noexcept { count(&Tally::misses); }

  std::uint64_t hits() const noexcept { return sum(&Tally::hits); }
  std::uint64_t misses() const noexcept { return sum(&Tally::misses); }

 private:
  static constexpr std::size_t kCacheLine = 64, kTallies = 64;

  // The counts of one thread; the last tally is shared by all further threads.
  struct alignas(kCacheLine) Tally {
    std::atomic<std::uint64_t> hits{0};
    std::atomic<std::uint64_t> misses{0};
  };

  // A thread that does not share its tally adds without an atomic read-modify-write, which would wait for all its
  // earlier stores, including non-temporal ones.
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
