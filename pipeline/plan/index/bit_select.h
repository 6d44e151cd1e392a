// A set of positions as a bitmap that finds the n-th member: one bit per position and a count for every 512 of
// them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace {

// Immutable once built; thread-safe.
class BitSelect {
 public:
  BitSelect() = default;
  // Bit i of words[j] says whether position 64 * j + i is a member.
  explicit BitSelect(std::vector<std::uint64_t> words) : words_(std::move(words)) {
    words_.resize((words_.size() + kBlockWords - 1) / kBlockWords * kBlockWords);
    for (std::size_t first = 0; first < words_.size(); first += kBlockWords) {
      before_.push_back(count_);
      for (std::size_t i = 0; i < kBlockWords; ++i)
        count_ += static_cast<std::uint64_t>(std::popcount(words_[first + i]));
    }
  }

  // Returns the number of members.
  std::uint64_t count() const noexcept { return count_; }

  // Returns the position of member `n`, in ascending order. O(log of the blocks). REQUIRES: `n` < count().
  std::uint64_t select(std::uint64_t n) const noexcept {
    const auto above = std::upper_bound(before_.begin(), before_.end(), n);
    const auto block = static_cast<std::size_t>(above - before_.begin()) - 1;
    std::uint64_t left = n - before_[block];
    std::size_t word = block * kBlockWords;
    for (;; ++word) {
      const auto here = static_cast<std::uint64_t>(std::popcount(words_[word]));
      if (left < here) break;
      left -= here;
    }
    std::uint64_t bits = words_[word];
    for (; left > 0; --left) bits &= bits - 1;
    return word * 64 + static_cast<std::uint64_t>(std::countr_zero(bits));
  }

 private:
  static constexpr std::size_t kBlockWords = 8;

  std::vector<std::uint64_t> words_;
  std::vector<std::uint64_t> before_;  // members before each block
  std::uint64_t count_ = 0;
};

}  // namespace headrace
