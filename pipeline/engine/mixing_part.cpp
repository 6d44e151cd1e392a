#include "headrace/pipeline/engine/mixing_part.h"

#include <algorithm>

namespace headrace {

// From the last mixer back to the first: what is needed after it needs its partners before it. A pair of which
// only one example is needed before a mixer is not mixed by it: that one is needed for nothing later.
void MixingPart::select(const std::vector<Mixer>& mixers, const BatchKey& key, std::int64_t examples,
                        std::int64_t first, std::int64_t count) {
  first_ = first;
  count_ = count;
  guests_.clear();
  pairs_.resize(mixers.size());
  needed_.assign(static_cast<std::size_t>(examples), false);
  std::fill_n(needed_.begin() + first, count, true);
  const auto is_needed = [&](std::int64_t example) { return needed_[static_cast<std::size_t>(example)]; };
  for (std::size_t m = mixers.size(); m-- > 0;) {
    const Pairing pairing(key, mixers[m].number(), examples);
    pairs_[m].clear();
    for (std::int64_t i = 0; i < Pairing::pairs_of(examples); ++i) {
      const Pair pair = pairing[i];
      if (is_needed(pair.first) || is_needed(pair.second)) pairs_[m].push_back({i, pair.first, pair.second});
    }
    for (const Mixed& mixed : pairs_[m]) {
      for (const std::int64_t example : {mixed.first, mixed.second}) {
        if (is_needed(example)) continue;
        needed_[static_cast<std::size_t>(example)] = true;
        guests_.push_back(example);
      }
    }
  }
  std::ranges::sort(guests_);
  for (std::vector<Mixed>& pairs : pairs_) {
    for (Mixed& mixed : pairs) mixed = {mixed.pair, number_of(mixed.first), number_of(mixed.second)};
  }
}

std::int64_t MixingPart::number_of(std::int64_t global) const noexcept {
  if (global >= first_ && global < first_ + count_) return global - first_;
  return count_ + (std::ranges::lower_bound(guests_, global) - guests_.begin());
}

std::int64_t MixingPart::max_guests(std::size_t mixers, std::int64_t examples, std::int64_t min_count,
                                    std::int64_t max_count) noexcept {
  std::int64_t needed = max_count;
  for (std::size_t m = 0; m < mixers && needed < examples; ++m) needed *= 2;
  return std::min(needed, examples) - std::min(min_count, examples);
}

}  // namespace headrace
