// Adds up the times between finished batches, as their events tell them.
#pragma once

#include <memory>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/trace.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/step/shards.h"
#include "headrace/train/step/step_slot.h"

namespace HEADRACE_API headrace {
class Reducer;
}

namespace headrace {

// Reads only completed events: it makes no thread wait.
class StepClock {
 public:
  // With a trace it adds one ring per replica, "cuda:0 steps", with the spans "input wait", "copy" and "step". The
  // first of a replica's shards stands for its input.
  StepClock(const Strategy& strategy, const Shards& shards, std::shared_ptr<Trace> trace = {});

  // Starts measuring on all streams. REQUIRES: earlier work is done.
  void restart();
  // Adds a batch that is done on all replicas; `before` is the batch submitted before it, ignored if `step` is the
  // first since the restart.
  void add(const StepSlot& step, const StepSlot& before);

  // See BatchQueue::time_sums().
  void time_sums(const Reducer& reducer) noexcept { reducer_ = &reducer; }

  StepTimes times;
  std::vector<StepTimes> replica_times;  // one per replica

 private:
  // A device's time between the ends of two batches.
  struct Interval {
    std::int64_t gap = 0;      // nothing to do
    std::int64_t waiting = 0;  // of the gap, before the host began to wait for the batch
    std::int64_t stall = 0;    // of the gap, while the host waited for it
    std::int64_t copy = 0;     // after the gap: the batch had not arrived
    std::int64_t elapsed = 0;
    std::int64_t sync = 0;  // of the work: waiting for other replicas
    std::int64_t sums = 0;  // beside other work or not
  };
  // Set how long the replica has waited for others since the last call, and the time of its sums.
  void count_sums(std::size_t replica, Interval& interval);
  static void count(const Interval& interval, StepTimes& into);
  void draw(std::size_t replica, const StepSlot& step, const Interval& interval);

  const Strategy& strategy_;
  const Shards shards_;
  std::vector<std::unique_ptr<Event>> start_;  // one per replica
  std::shared_ptr<Trace> trace_;               // null: nothing is traced
  std::vector<TraceRing*> rings_;              // one per replica, with a trace
  const Reducer* reducer_ = nullptr;           // null: waits within collectives count
  std::vector<std::int64_t> waited_ns_;        // counted so far, one per replica
  std::vector<std::int64_t> summed_ns_;        // likewise
  std::vector<std::int64_t> reached_ns_;       // the last batch's end on the host's clock, one per replica
};

}  // namespace headrace
