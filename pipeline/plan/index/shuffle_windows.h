// Windows of consecutive positions that are shuffled among themselves.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace headrace {

// All have `size` positions, but that the first may be smaller: `first`, then twice as many, and so on up to
// `size`.
class ShuffleWindows {
 public:
  // REQUIRES: 1 <= first <= size.
  ShuffleWindows(std::uint64_t size, std::uint64_t first) : size_(size), first_(first) {
    while (first_ << small_ < size_) ++small_;
  }
  explicit ShuffleWindows(std::uint64_t size) : ShuffleWindows(size, size) {}

  std::uint64_t number_of(std::uint64_t position) const noexcept {
    if (position >= begin_of(small_)) return small_ + (position - begin_of(small_)) / size_;
    return static_cast<std::uint64_t>(std::bit_width(position / first_ + 1)) - 1;
  }
  std::uint64_t begin_of(std::uint64_t window) const noexcept {
    const std::uint64_t small = std::min(window, small_);
    return first_ * ((std::uint64_t{1} << small) - 1) + (window - small) * size_;
  }
  // Returns whether a window begins at the position.
  bool begins(std::uint64_t position) const noexcept { return begin_of(number_of(position)) == position; }

 private:
  std::uint64_t size_, first_;
  std::uint64_t small_ = 0;  // windows that are smaller
};

}  // namespace headrace
