// Interleaves blocks of streams in turn, skipping those that have ended.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/pipeline/plan/index/index_stage.h"

namespace headrace {

class Interleaving {
 public:
  // Takes `block` positions of each part in turn. REQUIRES: `block` > 0.
  Interleaving(const std::vector<std::uint64_t>& sizes, std::uint64_t block);

  std::uint64_t size() const noexcept { return size_; }
  // O(log of the parts), and O(parts) in a round in which a part ends. REQUIRES: `position` < size().
  Share locate(std::uint64_t position) const noexcept;

 private:
  // Rounds with the same parts, each with the same amount.
  struct Phase {
    std::uint64_t first_position = 0;
    std::uint64_t first_round = 0;
    std::vector<std::size_t> parts;
    std::vector<std::uint64_t> ends;  // of each part's turn in a round
  };

  void add_phase(const std::vector<std::uint64_t>& sizes, std::uint64_t round, std::uint64_t rounds);

  std::uint64_t block_;
  std::vector<Phase> phases_;
  std::uint64_t size_ = 0;
};

}  // namespace headrace
