// Allocates the slots of a ring within the budgets, and explains their number.
#pragma once

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "headrace/pipeline/engine/run_plan.h"
#include "headrace/pipeline/engine/slot.h"
#include "headrace/pipeline/loader.h"

namespace headrace {

// The engine's own decisions. Thread-safe.
class Choices {
 public:
  // Replaces an earlier choice about the same thing.
  void note(Choice choice) {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(choices_, choice.what, &Choice::what);
    if (known != choices_.end()) {
      *known = std::move(choice);
    } else {
      choices_.push_back(std::move(choice));
    }
  }

  std::vector<Choice> list() const {
    const std::lock_guard lock(mutex_);
    return choices_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Choice> choices_;  // by mutex_
};

struct SlotMemory {
  std::vector<std::unique_ptr<Slot>> slots;
  Stores stores = Stores::kCached;  // into them
};

// Allocates one slot more than prefetched batches, fewer if the run has fewer batches or they do not fit in the
// budgets, the host's memory or the devices'; notes the choice. Throws ConfigError if not even one held and one
// written batch fit. `conversion` null: the devices convert nothing.
SlotMemory allocate_slots(const RunPlan& run, DeviceGroup& devices, const DeviceConversion* conversion,
                          Budgets& budgets, Choices& choices);

}  // namespace headrace
