#include "headrace/pipeline/plan/index/interleaving.h"

#include <algorithm>
#include <set>

namespace headrace {

Interleaving::Interleaving(const std::vector<std::uint64_t>& sizes, std::uint64_t block) : block_(block) {
  // The amounts change only after a part's last full round and after its last round.
  std::set<std::uint64_t> changes;
  for (std::uint64_t size : sizes) changes.insert({size / block, size / block + (size % block != 0)});
  std::uint64_t round = 0;
  for (std::uint64_t next : changes) {
    if (next > round) add_phase(sizes, round, next - round);
    round = next;
  }
}

void Interleaving::add_phase(const std::vector<std::uint64_t>& sizes, std::uint64_t round, std::uint64_t rounds) {
  Phase phase{.first_position = size_, .first_round = round, .parts = {}, .ends = {}};
  std::uint64_t end = 0;
  for (std::size_t part = 0; part < sizes.size(); ++part) {
    const std::uint64_t given = std::min(sizes[part], round * block_);
    const std::uint64_t amount = std::min(block_, sizes[part] - given);
    if (amount == 0) continue;
    phase.parts.push_back(part);
    phase.ends.push_back(end += amount);
  }
  size_ += end * rounds;
  phases_.push_back(std::move(phase));
}

Share Interleaving::locate(std::uint64_t position) const noexcept {
  const auto above =
      std::upper_bound(phases_.begin(), phases_.end(), position,
                       [](std::uint64_t at, const Phase& phase) { return at < phase.first_position; });
  const Phase& phase = *(above - 1);
  const std::uint64_t within = position - phase.first_position;
  const std::uint64_t round = phase.first_round + within / phase.ends.back();
  const std::uint64_t at = within % phase.ends.back();
  const auto turn =
      static_cast<std::size_t>(std::upper_bound(phase.ends.begin(), phase.ends.end(), at) - phase.ends.begin());
  return {.part = phase.parts[turn], .position = round * block_ + at - (turn == 0 ? 0 : phase.ends[turn - 1])};
}

}  // namespace headrace
