// One stream after the other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "headrace/pipeline/plan/index/index_stage.h"

namespace headrace {

class Concatenation {
 public:
  explicit Concatenation(const std::vector<std::uint64_t>& sizes) {
    std::uint64_t end = 0;
    for (std::uint64_t size : sizes) ends_.push_back(end += size);
  }

  std::uint64_t size() const noexcept { return ends_.empty() ? 0 : ends_.back(); }

  // `position` < size(). O(log of the parts).
  Share locate(std::uint64_t position) const noexcept {
    const auto part =
        static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), position) - ends_.begin());
    return {.part = part, .position = part == 0 ? position : position - ends_[part - 1]};
  }

 private:
  std::vector<std::uint64_t> ends_;
};

}  // namespace headrace
