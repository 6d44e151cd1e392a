// Records of batches to come, announced to a source behind a network.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/engine/run_plan.h"
#include "headrace/pipeline/engine/slot.h"

namespace headrace {

// Does nothing unless the source's bytes come over a network.
class RemoteReads {
 public:
  // Charges what may be fetched ahead to the budget, at most half of what it has left. REQUIRES: both outlive
  // this.
  RemoteReads(RunPlan& run, MemoryBudget& budget);

  // Announces the records of the batch, and of those that follow it, that no cache holds. Called by the assembler.
  void announce(const Slot& slot);
  // Lets the source forget what was announced and not read.
  void forget() const noexcept;

 private:
  void announce_batch(std::uint64_t sequence);
  void announce_records(std::span<const std::uint64_t> records);

  RunPlan& run_;
  ChargedBytes charged_;
  std::optional<remote::Window> window_;                    // none: not remote
  std::uint64_t next_ = 0;                                  // batch to announce
  std::vector<std::uint64_t> records_, passes_, uncached_;  // reused
};

}  // namespace headrace
