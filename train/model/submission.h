// Submits work to all replicas, and reports the one that failed; captures work on a stream.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>

#include "headrace/devices/base/error.h"
#include "headrace/devices/stream.h"
#include "headrace/train/strategy.h"

namespace headrace {

// Ends a step that failed: a replica's stream skipped its work, or a device refused a call (`known`). Releases the
// replicas that wait for it, makes the strategy usable again and throws a DeviceError that names replica and
// step.
[[noreturn]] void throw_failed(Strategy& strategy, std::uint64_t step, const DeviceError* known = nullptr);

// Calls submit(replica) for every replica. If one throws, the others would wait for it on their devices forever: a
// DeviceError ends the step as throw_failed() does, any other exception is rethrown once the strategy has
// recovered.
template <typename Submit>
void submit_to_all(Strategy& strategy, std::uint64_t step, const Submit& submit) {
  for (int replica = 0; replica < strategy.local_replicas(); ++replica) {
    try {
      submit(replica);
    } catch (const DeviceError& error) {
      throw_failed(strategy, step, &error);
    } catch (...) {
      strategy.recover();
      throw;
    }
  }
}

// Calls submit() and waits for the strategy's streams. If either fails, no work is left in the streams that waits
// for another replica or uses memory that the caller is about to free.
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

// Returns what submit() submits to the stream as one piece of captured work. An exception leaves the stream as it
// was.
template <typename Submit>
std::unique_ptr<CapturedWork> capture(Stream& stream, const Submit& submit) {
  stream.begin_capture();
  try {
    submit();
  } catch (...) {
    try {
      stream.end_capture();
    } catch (const std::exception&) {
      // An incomplete capture may fail to end: report what broke it off instead.
    }
    throw;
  }
  return stream.end_capture();
}

}  // namespace headrace
