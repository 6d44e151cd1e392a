// The slots of a ring within the budgets, and why they are as many as they are.
#pragma once

#include <memory>
#include <vector>

#include "headrace/pipeline/engine/choices.h"
#include "headrace/pipeline/engine/run_plan.h"
#include "headrace/pipeline/engine/slot.h"

namespace headrace {

struct SlotMemory {
  std::vector<std::unique_ptr<Slot>> slots;
  Stores stores = Stores::kCached;  // into them
};

// One slot more than batches are prefetched, fewer where the run has no more batches or they do not fit; notes the
// choice. ConfigError where not even one that is held and one that is written fit. `conversion` null: the devices
// convert nothing.
SlotMemory allocate_slots(const RunPlan& run, DeviceGroup& devices, const DeviceConversion* conversion,
                          Budgets& budgets, Choices& choices);

}  // namespace headrace
