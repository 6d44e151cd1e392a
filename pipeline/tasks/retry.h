// Reading a record of a source that may refuse for a moment.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/operations/machinery/chain.h"
#include "headrace/pipeline/tasks/failure.h"

namespace headrace {

inline const std::string kReading = "source read";

// Whether the system refused the read: it may do it a little later.
inline bool is_refusal(const DataError& error) {
  if (dynamic_cast<const FilterError*>(&error) != nullptr) return false;
  return error.code() == ErrorCode::kIo || error.code() == ErrorCode::kNotFound;
}

// What read() returns. What the system refused is asked for again, a little later each time, as long as
// may_ask_again() says so, which is asked before each wait by `clock`. Throws read()'s last DataError, and as
// StepError of kReading what is none.
template <typename Read, typename MayAskAgain>
auto read_with_retries(const Clock& clock, const Read& read, const MayAskAgain& may_ask_again) {
  constexpr std::uint64_t kFirstPauseNs = 5'000'000, kMaxPauseNs = 80'000'000;
  constexpr int kLongerPause = 4;
  for (std::uint64_t pause = kFirstPauseNs;; pause *= kLongerPause) {
    try {
      return read();
    } catch (const DataError& error) {  // says where by itself
      if (!is_refusal(error) || pause > kMaxPauseNs || !may_ask_again()) throw;
    } catch (const std::exception& error) {
      throw name_step(kReading, error);
    }
    clock.sleep_until(clock.now() + pause);
  }
}

}  // namespace headrace
