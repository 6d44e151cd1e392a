// A set of batches, by their numbers.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace headrace {

// All batches below one, and some beyond it: those handed out, where batches may overtake others.
class BatchSet {
 public:
  // Holds the batches below `first`, and `ahead`. REQUIRES: `ahead` ascends, and each is larger than `first`.
  explicit BatchSet(std::uint64_t first = 0, std::vector<std::uint64_t> ahead = {})
      : first_(first), ahead_(std::move(ahead)) {}

  // Returns the first batch that it does not hold.
  std::uint64_t first() const noexcept { return first_; }
  // Returns the batches that it holds beyond that, ascending.
  const std::vector<std::uint64_t>& ahead() const noexcept { return ahead_; }
  // Returns the batch after the last one that it holds.
  std::uint64_t end() const noexcept { return ahead_.empty() ? first_ : ahead_.back() + 1; }

  bool contains(std::uint64_t sequence) const noexcept;
  // Returns the first batch after `sequence` that it does not hold.
  std::uint64_t after(std::uint64_t sequence) const noexcept;
  // Returns one of the batches that it does not hold: first() + n is mapped to number n of them, from 0.
  std::uint64_t missing(std::uint64_t turn) const noexcept;

  // REQUIRES: it does not hold `sequence`.
  void add(std::uint64_t sequence);
  // REQUIRES: it holds `sequence`.
  void remove(std::uint64_t sequence);

 private:
  std::uint64_t first_;
  std::vector<std::uint64_t> ahead_;
};

}  // namespace headrace
