// The input engine's statistics for a training, summed over its epochs.
#pragma once

#include <nlohmann/json.hpp>

#include "headrace/pipeline/stats.h"

namespace headrace::tools {

// Sums FitControl::input_stats(). Restarts if a stage's number of threads changes, so that occupancies and rates
// are those of the engine as it runs at the end.
class InputStatistics {
 public:
  // Sets the statistics of the current epoch, replacing the previous ones.
  void note(const LoaderStats& epoch) { present_ = epoch; }
  // Ends the epoch.
  void end_epoch(const LoaderStats& epoch);

  // Returns null if nothing was delivered; else the counts, with stage_line() of each stage under "stages" and
  // verdict_line() under "verdict".
  nlohmann::ordered_json to_json() const;

 private:
  LoaderStats done_ = {};  // the epochs that are over
  LoaderStats present_ = {};
};

}  // namespace headrace::tools
