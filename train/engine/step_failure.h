// What to say about a step that went wrong.
#pragma once

#include "headrace/train/engine/model_state.h"
#include "headrace/train/engine/step_slot.h"

namespace headrace {

// For a step of which some replica's stream skipped the work: frees the replicas that wait for it, makes the
// strategy usable again and throws a DeviceError with replica and step.
[[noreturn]] void throw_failed(Strategy& strategy, const StepSlot& step);

// Throws where a replica's sum of losses is not a finite number: a DataError naming the record where a label is
// out of range, else an Error naming the step.
void check_numbers(const ModelState& model, const StepSlot& step, int replica);

}  // namespace headrace
