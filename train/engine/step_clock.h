// Adds up what the events of finished batches say about the time between them.
#pragma once

#include <memory>
#include <vector>

#include "headrace/train/engine/step_slot.h"
#include "headrace/train/step_times.h"

namespace headrace {

class Strategy;

// Only looks at events that are complete: nobody waits for it.
class StepClock {
 public:
  explicit StepClock(const Strategy& strategy);

  // From here on, on all streams. What was submitted before must be done.
  void restart();
  // `step` is done on all replicas, and `before` is the batch submitted before it (nobody's business where `step`
  // is the first since the restart).
  void add(const StepSlot& step, const StepSlot& before);

  StepTimes times;

 private:
  const Strategy& strategy_;
  std::vector<std::unique_ptr<Event>> start_;  // one a replica
};

}  // namespace headrace
