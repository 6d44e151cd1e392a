// Forward passes over data: sums of loss and metrics, or the results themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "headrace/pipeline/loader.h"
#include "headrace/train/engine/batch_runner.h"

namespace headrace {

// Captured once, used for any number of passes. One thread.
class Evaluator {
 public:
  // Everything given must outlive the evaluator.
  Evaluator(ModelState& model, Loader& loader, const BatchRunnerOptions& options);

  // One pass, or `steps` batches of it (0: all), and waits for it.
  MetricSums run(std::uint64_t steps);

  BatchRunner& runner() noexcept { return runner_; }

 private:
  void capture(int replica, const BatchRunnerOptions& options);

  ModelState& model_;
  Loader& loader_;
  std::vector<std::unique_ptr<CapturedWork>> works_;
  BatchRunner runner_;  // after the works: it waits when destroyed
};

}  // namespace headrace
