// Calls a function of the caller's program.
#pragma once

#include <exception>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

// The watchdog knows that the thread is in there and may give it up. Whatever is thrown arrives as a
// std::exception.
template <typename Call>
void call_user_code(Probe& probe, const Call& call) {
  run_user_code(probe, [&] {
    try {
      call();
    } catch (const std::exception&) {
      throw;
    } catch (...) {
      throw Error(ErrorCode::kInvalidArgument, "threw something that is no std::exception");
    }
  });
}

}  // namespace headrace
