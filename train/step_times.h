// Where the time of training steps went, as the devices' own clocks tell.
#pragma once

#include <cstdint>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Sums over batches that are done, and over replicas. A replica's time runs from the end of one batch to the end
// of the next: it has nothing to do, waits for the batch to arrive, works.
struct StepTimes {
  std::uint64_t batches = 0;  // global ones
  std::int64_t elapsed_ns = 0;
  std::int64_t input_stall_ns = 0;   // nothing to do: the host was waiting for the batch
  std::int64_t exposed_copy_ns = 0;  // the batch had been handed out and was still on its way to the device
  std::int64_t idle_ns = 0;          // nothing to do for any other reason: the host was late
  // Within the work: waiting for other replicas to join a sum. Of CPU replicas; some steps ahead of the others.
  std::int64_t sync_wait_ns = 0;
  std::uint64_t host_ns = 0;  // of the thread that submits, without its waits; of batches submitted

  double input_stall_fraction() const noexcept { return share(input_stall_ns); }
  double exposed_copy_fraction() const noexcept { return share(exposed_copy_ns); }
  double sync_wait_fraction() const noexcept { return share(sync_wait_ns); }
  double device_idle_fraction() const noexcept { return share(idle_ns); }

 private:
  double share(std::int64_t ns) const noexcept {
    return elapsed_ns > 0 ? static_cast<double>(ns) / static_cast<double>(elapsed_ns) : 0.0;
  }
};

}  // namespace headrace
