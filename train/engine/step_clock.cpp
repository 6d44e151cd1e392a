#include "headrace/train/engine/step_clock.h"

#include <algorithm>

#include "headrace/train/strategy.h"

namespace headrace {
namespace {

// Of a gap in a device's work that ended when the next batch was submitted: the part in which the host waited for
// it.
std::int64_t stalled(std::int64_t gap, const StepSlot& step, const ReplicaSlot& slot) {
  const auto asked = static_cast<std::int64_t>(step.asked_ns), taken = static_cast<std::int64_t>(step.taken_ns);
  const auto gap_began = static_cast<std::int64_t>(slot.submitted_ns) - gap;
  return std::clamp<std::int64_t>(taken - std::max(asked, gap_began), 0, gap);
}

}  // namespace

StepClock::StepClock(const Strategy& strategy) : strategy_(strategy) {
  for (int r = 0; r < strategy.replicas(); ++r) start_.push_back(strategy.device(r).create_timed_event());
}

void StepClock::restart() {
  times = {};
  for (int r = 0; r < strategy_.replicas(); ++r) strategy_.stream(r).record(*start_[static_cast<std::size_t>(r)]);
}

void StepClock::add(const StepSlot& step, const StepSlot& before) {
  ++times.batches;
  for (std::size_t r = 0; r < step.replicas.size(); ++r) {
    const ReplicaSlot& slot = step.replicas[r];
    const Event& previous = step.restarted ? *start_[r] : *before.replicas[r].done;
    const std::optional<std::int64_t> elapsed = slot.done->ns_since(previous),
                                      idle = slot.begin->ns_since(previous);
    if (!elapsed || !idle) continue;  // a device that failed tells nothing
    const std::int64_t gap = std::max<std::int64_t>(0, *idle);
    const std::int64_t stall = stalled(gap, step, slot);
    times.elapsed_ns += *elapsed;
    times.input_stall_ns += stall;
    times.idle_ns += gap - stall;
    if (slot.waited) times.exposed_copy_ns += slot.arrived->ns_since(*slot.begin).value_or(0);
  }
}

}  // namespace headrace
