// The list given to select().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace headrace {

// Immutable and thread-safe; shared by all plans derived from one select(). Takes 8 bytes a number, 12 if some are
// repeated.
class ChosenNumbers {
 public:
  explicit ChosenNumbers(std::vector<std::uint64_t> numbers);

  const std::vector<std::uint64_t>& numbers() const noexcept { return numbers_; }
  // Returns how often the most frequent number occurs: at least 1.
  std::uint64_t max_occurrences() const noexcept { return max_occurrences_; }
  // Returns how many equal numbers precede the one at `place`. O(1). REQUIRES: `place` < numbers().size().
  std::uint64_t occurrence(std::size_t place) const noexcept {
    return occurrences_.empty() ? 0 : occurrences_[place];
  }
  // Throws ConfigError with the first number that is not below `count`, and its place.
  void require_below(std::uint64_t count) const;
  // Returns "select(5, 0, 5)", or of a long list its length, first numbers and hash.
  std::string describe() const;

 private:
  void count_occurrences();

  std::vector<std::uint64_t> numbers_;
  std::vector<std::uint32_t> occurrences_;  // by place; empty if no number is repeated
  std::uint64_t max_occurrences_ = 1;
  std::uint64_t max_ = 0;
};

}  // namespace headrace
