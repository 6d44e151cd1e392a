// The order of batches that are handed out as they become ready.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "headrace/pipeline/engine/batch_set.h"
#include "headrace/pipeline/engine/ring.h"
#include "headrace/pipeline/engine/run_plan.h"

namespace headrace {

// One order for all replicas: the first one that asks for a turn chooses its batch. Turns count from
// RunPlan::first. A batch is overtaken by at most those of the other slots, since its own slot takes no other. No
// batch overtakes one of an earlier epoch, or of a stream one of an earlier whole, to which the limit of bad
// records applies. REQUIRES: callers hold Ring::mutex().
class ReadyOrder {
 public:
  // REQUIRES: both outlive this.
  ReadyOrder(const RunPlan& run, const Ring& ring);

  // Returns the turn's batch. If none is chosen yet, chooses the one with the lowest number of those that are
  // ready; std::nullopt if none is. REQUIRES: `turn` is at most turns().
  std::optional<std::uint64_t> batch_at(std::uint64_t turn);
  // Returns whether the run has no batch for the turn.
  bool is_over(std::uint64_t turn) const;
  // Returns whether all other batches of the epoch are chosen for earlier turns. REQUIRES, as the next two: `turn`
  // is not forgotten, and below turns().
  bool ends_epoch(std::uint64_t turn) const { return chosen(turn).ends_epoch; }
  // Returns the batch chosen for the turn.
  std::uint64_t chosen_batch(std::uint64_t turn) const noexcept { return chosen(turn).sequence; }
  // Returns whether the batch was chosen for this turn or a later one.
  bool is_due(std::uint64_t turn, std::uint64_t sequence) const;

  // Forgets what was chosen for the turns before this one, which all replicas have passed.
  void forget(std::uint64_t turn) noexcept;

  // Returns the first turn for which no batch is chosen.
  std::uint64_t turns() const noexcept { return turns_; }
  // Returns the first batch that is not chosen.
  std::uint64_t first() const noexcept { return chosen_.first(); }
  // Returns how many batches are ready that a consumer at this turn has not taken.
  std::uint64_t ready(std::uint64_t turn) const;
  // Returns the batches handed out in turns before this one, and by earlier parts of the run. REQUIRES: the turn
  // is not forgotten, or it is turns().
  BatchSet handed_out(std::uint64_t turn) const;

 private:
  struct Chosen {
    std::uint64_t sequence = 0;
    bool ends_epoch = false;
  };

  const Chosen& chosen(std::uint64_t turn) const noexcept { return kept_[kept_.size() - (turns_ - turn)]; }
  // Returns the first batch that may not overtake this one, because of its number.
  std::uint64_t limit(std::uint64_t sequence) const noexcept;
  bool is_free(std::uint64_t sequence) const;

  const RunPlan& run_;
  const Ring& ring_;
  BatchSet chosen_;
  std::uint64_t turns_;
  std::deque<Chosen> kept_;  // of the turns that some replica has not passed; the last one is turns_ - 1's
};

}  // namespace headrace
