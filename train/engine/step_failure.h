// What to say about a step that went wrong.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>

#include "headrace/devices/base/error.h"
#include "headrace/train/engine/model_state.h"
#include "headrace/train/engine/step_slot.h"
#include "headrace/train/strategy.h"

namespace headrace {

// For a step of which some replica's stream skipped the work, or whose device refused a call with what is `known`:
// frees the replicas that wait for it, makes the strategy usable again and throws a DeviceError with replica and
// step.
[[noreturn]] void throw_failed(Strategy& strategy, std::uint64_t step,
                               const std::optional<DeviceError>& known = {});

// submit(replica) for every replica. Where one refuses its part the others may wait for it on their devices, for
// ever: then this does as throw_failed(), or passes on what is no failure of a device.
template <typename Submit>
void submit_to_all(Strategy& strategy, std::uint64_t step, const Submit& submit) {
  for (int replica = 0; replica < strategy.replicas(); ++replica) {
    try {
      submit(replica);
    } catch (const DeviceError& error) {
      throw_failed(strategy, step, error);
    } catch (...) {
      strategy.recover();
      throw;
    }
  }
}

// Waits for what `submit` submits to the strategy's streams. Where something of it fails, nothing is left in them
// that waits for another replica, or uses what the caller is about to free.
template <typename Submit>
void submit_and_wait(Strategy& strategy, const Submit& submit) {
  try {
    submit();
    strategy.synchronize();
  } catch (...) {
    strategy.recover();
    throw;
  }
}

// Throws where a replica's sum of losses is not a finite number: a DataError naming the record where a label is
// out of range, else an Error naming the step.
void check_numbers(const ModelState& model, const StepSlot& step, int replica);

}  // namespace headrace
