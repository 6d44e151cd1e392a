// What the input engine did for a training, summed over its epochs.
#pragma once

#include <nlohmann/json.hpp>

#include "headrace/pipeline/stats.h"

namespace headrace::tools {

// Takes FitControl::input_stats(). Begins anew where a stage has another number of threads than before, so that
// occupancies and rates are those of the engine as it runs at the end.
class InputStatistics {
 public:
  // Of the epoch that is under way; replaces what it said before.
  void note(const LoaderStats& epoch) { present_ = epoch; }
  // The epoch is over.
  void end_epoch(const LoaderStats& epoch);

  // Null where nothing was delivered. Else what was counted, each stage as stage_line() has it under "stages",
  // the verdict as verdict_line() has it under "verdict".
  nlohmann::ordered_json to_json() const;

 private:
  LoaderStats done_ = {};  // the epochs that are over
  LoaderStats present_ = {};
};

}  // namespace headrace::tools
