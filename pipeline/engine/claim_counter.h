// Divides the numbers 0, 1, ... among threads that take as many as they can use at once.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>

namespace headrace {

// Lock-free. What was offered and what is taken are one word, so that a claim never mixes two offers: a thread
// that comes late takes from the newer one or finds nothing.
class ClaimCounter {
 public:
  static constexpr std::int64_t kMaxCount = std::numeric_limits<std::uint32_t>::max();

  struct Range {
    std::int64_t first = 0;
    std::int64_t count = 0;  // 0: nothing was left
    bool is_last = false;    // nothing is left now
  };

  // Offers 0 to count - 1 and takes back what is left of the offer before. By one thread at a time; what it wrote
  // before is seen by those who claim.
  void offer(std::int64_t count) noexcept { state_.store(static_cast<std::uint64_t>(count) << 32); }

  // The next `max_count` at most.
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
