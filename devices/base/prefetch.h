// Fetching memory before it is needed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace headrace {

// Fetches bytes that will be read soon into the second-level cache, a piece at a time beside other work: all at
// once they would fill the queue of the work's own reads and writes.
class FetchAhead {
 public:
  // Fetches the first kMaxBytes bytes in at most `pieces` pieces.
  FetchAhead(std::span<const std::byte> bytes, std::int64_t pieces) noexcept
      : next_(bytes.data()), end_(bytes.data() + std::min(bytes.size(), kMaxBytes)) {
    const std::size_t lines = (static_cast<std::size_t>(end_ - next_) + kLine - 1) / kLine;
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(pieces, 1));
    piece_ = (lines + count - 1) / count * kLine;
  }

  void fetch_piece() noexcept {
    const std::byte* const end = next_ + std::min(piece_, static_cast<std::size_t>(end_ - next_));
    for (; next_ < end; next_ += kLine) __builtin_prefetch(next_, 0, 2);
    next_ = std::min(next_, end_);
  }

 private:
  static constexpr std::size_t kLine = 64, kMaxBytes = 4096;

  const std::byte* next_;
  const std::byte* end_;
  std::size_t piece_;
};

inline void prefetch(std::span<const std::byte> bytes) noexcept { FetchAhead(bytes, 1).fetch_piece(); }

}  // namespace headrace
