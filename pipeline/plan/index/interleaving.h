// Streams in turn, a block of each; one that has ended is passed over.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/pipeline/plan/index/index_stage.h"

namespace headrace {

class Interleaving {
 public:
  // `block` > 0 positions of a part, then the next part's turn.
  Interleaving(const std::vector<std::uint64_t>& sizes, std::uint64_t block);

  std::uint64_t size() const noexcept { return size_; }
  // `position` < size(). O(log of the parts), and O(parts) in a round that some part ends in.
  Share locate(std::uint64_t position) const noexcept;

 private:
  // Rounds that the same parts take part in, all of them with the same amounts.
  struct Phase {
    std::uint64_t first_position = 0;
    std::uint64_t first_round = 0;
    std::vector<std::size_t> parts;
    std::vector<std::uint64_t> ends;  // of each part's turn, within a round
  };

  void add_phase(const std::vector<std::uint64_t>& sizes, std::uint64_t round, std::uint64_t rounds);

  std::uint64_t block_;
  std::vector<Phase> phases_;
  std::uint64_t size_ = 0;
};

}  // namespace headrace
