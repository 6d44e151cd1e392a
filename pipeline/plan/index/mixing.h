// A random merge of streams in which each keeps its order and contributes an exact number of positions.
//
// The epoch is halved repeatedly; at each cut every part's share of the left half is its exact proportion, rounded
// up or down at random, until 64 positions are left, which are shuffled. So any position is found in O(parts *
// log(size)) without state, any long stretch has the requested proportions to within a few positions, and nothing
// occurs twice.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "headrace/pipeline/plan/index/index_stage.h"

namespace headrace {

// The positions that were shuffled together last; kept by callers who walk through the stream.
struct MixedStretch {
  static constexpr std::uint64_t kLength = 64;

  std::uint64_t pass = 0, first = 0, length = 0;  // length 0: none yet
  std::array<std::uint32_t, kLength> parts{};     // of each position
  std::array<std::uint64_t, kLength> positions{};
  // Working memory: each part's positions before the stretch, in it, and left of a cut.
  std::vector<std::uint64_t> before, here, left;
};

class Mixing {
 public:
  // Takes `counts[i]` positions from part i.
  Mixing(std::vector<std::uint64_t> counts, std::uint64_t key);

  std::uint64_t size() const noexcept { return size_; }
  // Uses another merge in each pass. `stretch` belongs to the caller and is used only with this object.
  // REQUIRES: `position` < size().
  Share locate(std::uint64_t pass, std::uint64_t position, MixedStretch& stretch) const;

 private:
  void find_stretch(std::uint64_t pass, std::uint64_t position, MixedStretch& stretch) const;
  void shuffle(std::uint64_t key, MixedStretch& stretch) const;

  std::vector<std::uint64_t> counts_;
  std::uint64_t key_;
  std::uint64_t size_ = 0;
};

}  // namespace headrace
