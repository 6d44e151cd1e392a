#include "headrace/pipeline/engine/ready_order.h"

#include <algorithm>

namespace headrace {

ReadyOrder::ReadyOrder(const RunPlan& run, const Ring& ring)
    : run_(run), ring_(ring), chosen_(run.earlier), turns_(run.first) {}

std::uint64_t ReadyOrder::limit(std::uint64_t sequence) const noexcept {
  return std::min({sequence + ring_.size(), run_.whole_end(sequence), run_.epoch_end(sequence), ring_.end()});
}

bool ReadyOrder::is_free(std::uint64_t sequence) const {
  return ring_.slot_of(sequence).mark.is(sequence, SlotState::kReady) && !chosen_.contains(sequence);
}

std::optional<std::uint64_t> ReadyOrder::batch_at(std::uint64_t turn) {
  if (turn < turns_) return chosen(turn).sequence;
  const std::uint64_t end = limit(chosen_.first());
  for (std::uint64_t sequence = chosen_.first(); sequence < end; ++sequence) {
    if (!is_free(sequence)) continue;
    chosen_.add(sequence);
    const bool ends_epoch = chosen_.first() >= std::min(run_.epoch_end(sequence), ring_.end());
    kept_.push_back({.sequence = sequence, .ends_epoch = ends_epoch});
    ++turns_;
    return sequence;
  }
  return std::nullopt;
}

void ReadyOrder::forget(std::uint64_t turn) noexcept {
  while (turns_ - kept_.size() < turn) kept_.pop_front();
}

bool ReadyOrder::is_over(std::uint64_t turn) const { return turn >= turns_ && chosen_.first() >= ring_.end(); }

bool ReadyOrder::is_due(std::uint64_t turn, std::uint64_t sequence) const {
  for (; turn < turns_; ++turn) {
    if (chosen(turn).sequence == sequence) return true;
  }
  return false;
}

std::uint64_t ReadyOrder::ready(std::uint64_t turn) const {
  std::uint64_t ready = turns_ - turn;
  const std::uint64_t end = limit(chosen_.first());
  for (std::uint64_t sequence = chosen_.first(); sequence < end; ++sequence) ready += is_free(sequence) ? 1 : 0;
  return ready;
}

BatchSet ReadyOrder::handed_out(std::uint64_t turn) const {
  BatchSet batches = chosen_;
  for (; turn < turns_; ++turn) batches.remove(chosen(turn).sequence);
  return batches;
}

}  // namespace headrace
