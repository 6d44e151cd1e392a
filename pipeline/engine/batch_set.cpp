#include "headrace/pipeline/engine/batch_set.h"

#include <algorithm>
#include <utility>

namespace headrace {

bool BatchSet::contains(std::uint64_t sequence) const noexcept {
  return sequence < first_ || std::ranges::binary_search(ahead_, sequence);
}

std::uint64_t BatchSet::after(std::uint64_t sequence) const noexcept {
  ++sequence;
  while (contains(sequence)) ++sequence;
  return sequence;
}

// The held batch i has as many missing ones before it as its number exceeds i: that number grows with i.
std::uint64_t BatchSet::missing(std::uint64_t turn) const noexcept {
  std::size_t low = 0, high = ahead_.size();
  while (low < high) {
    const std::size_t middle = (low + high) / 2;
    if (ahead_[middle] - middle <= turn) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return turn + low;
}

void BatchSet::add(std::uint64_t sequence) {
  if (sequence != first_) {
    ahead_.insert(std::ranges::lower_bound(ahead_, sequence), sequence);
    return;
  }
  std::size_t joined = 0;  // those that follow without a gap
  for (++first_; joined < ahead_.size() && ahead_[joined] == first_; ++first_) ++joined;
  ahead_.erase(ahead_.begin(), ahead_.begin() + static_cast<std::ptrdiff_t>(joined));
}

void BatchSet::remove(std::uint64_t sequence) {
  if (sequence > first_) {
    ahead_.erase(std::ranges::lower_bound(ahead_, sequence));
    return;
  }
  std::vector<std::uint64_t> between;
  for (std::uint64_t held = sequence + 1; held < first_; ++held) between.push_back(held);
  ahead_.insert(ahead_.begin(), between.begin(), between.end());
  first_ = sequence;
}

}  // namespace headrace
