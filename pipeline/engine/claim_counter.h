// Divides the numbers 0, 1, ... among threads, which claim several at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

namespace headrace {

// Lock-free. The offered and claimed counts share one word, so that a claim never mixes two offers: a late thread
// takes from the newer one or finds nothing.
class ClaimCounter {
 public:
  static constexpr std::int64_t kMaxCount = std::numeric_limits<std::uint32_t>::max();

  struct Range {
    std::int64_t first = 0;
    std::int64_t count = 0;  // 0: nothing was left
    bool is_last = false;    // nothing is left now
  };

  // Offers 0 to count - 1 and withdraws the rest of the previous offer. Called by one thread at a time; threads
  // that claim see its earlier writes.
  void offer(std::int64_t count) noexcept { state_.store(static_cast<std::uint64_t>(count) << 32); }

  // Claims the next numbers, `max_count` at most.
  Range claim(std::int64_t max_count) noexcept {
    std::uint64_t state = state_.load();
    for (;;) {
      const std::int64_t next = next_of(state), count = std::min(max_count, end_of(state) - next);
      if (count <= 0) return {};
      if (!state_.compare_exchange_weak(state, state + static_cast<std::uint64_t>(count))) continue;
      return {.first = next, .count = count, .is_last = next + count == end_of(state)};
    }
  }

  bool empty() const noexcept {
    const std::uint64_t state = state_.load();
    return next_of(state) == end_of(state);
  }

 private:
  static std::int64_t next_of(std::uint64_t state) noexcept { return static_cast<std::uint32_t>(state); }
  static std::int64_t end_of(std::uint64_t state) noexcept { return static_cast<std::int64_t>(state >> 32); }

  std::atomic<std::uint64_t> state_{0};  // the count in the upper half, the next number in the lower
};

}  // namespace headrace
