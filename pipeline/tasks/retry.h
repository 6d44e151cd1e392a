// Reads records with retries, from a source that may refuse temporarily.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/machinery/step.h"
#include "headrace/pipeline/tasks/failure.h"

namespace headrace {

inline const std::string kReading = "source read";

// Returns whether the system refused the read: a retry may succeed.
inline bool is_refusal(const DataError& error) {
  if (dynamic_cast<const FilterError*>(&error) != nullptr) return false;
  return error.code() == ErrorCode::kIo || error.code() == ErrorCode::kNotFound;
}

// Returns the result of read(). Retries reads that the system refused, with growing waits by `clock`, as long as
// may_ask_again(), called before each wait, returns true. Throws read()'s last DataError, and any other exception
// as StepError of kReading.
template <typename Read, typename MayAskAgain>
auto read_with_retries(const Clock& clock, const Read& read, const MayAskAgain& may_ask_again) {
  constexpr std::uint64_t kFirstPauseNs = 5'000'000, kMaxPauseNs = 80'000'000;
  constexpr int kLongerPause = 4;
  for (std::uint64_t pause = kFirstPauseNs;; pause *= kLongerPause) {
    try {
      return read();
    } catch (const DataError& error) {  // already says where
      if (!is_refusal(error) || pause > kMaxPauseNs || !may_ask_again()) throw;
    } catch (const std::exception& error) {
      throw name_step(kReading, error);
    }
    clock.sleep_until(clock.now() + pause);
  }
}

}  // namespace headrace
