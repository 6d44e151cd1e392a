// Forward passes over data: sums of loss and metrics, or the results themselves.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "headrace/pipeline/loader.h"
#include "headrace/train/step/batch_queue.h"
#include "headrace/train/step/view_ensemble.h"

namespace headrace {

// What of EvaluateOptions steers a pass.
struct EvaluationPass {
  std::uint64_t steps = 0;
  std::function<void(std::uint64_t done, std::uint64_t of)> progress = {};
  const std::atomic<bool>* stop = nullptr;
};

// Captured once, used for any number of passes. One thread.
class Evaluator {
 public:
  // Everything given must outlive the evaluator.
  Evaluator(ModelState& model, Loader& loader, const BatchQueueOptions& options,
            const std::vector<View>& views = {});

  // Does all of a batch once, with no examples: kernels are loaded then. Waits.
  void warm_up();

  // One pass over the data, and waits for its end; nothing where it was stopped.
  std::optional<MetricSums> run(const EvaluationPass& pass);
  // One batch of a pass of somebody else's, the one taken last from the runner.
  void submit(GlobalBatch batches);

  BatchQueue& queue() noexcept { return queue_; }

 private:
  void launch(int shard);
  // The bf16 copy of averaged weights is what they round to.
  void bring_up_to_date();
  void capture(int shard, const BatchQueueOptions& options, const std::vector<View>& views);

  ModelState& model_;
  Loader& loader_;
  bool averaged_weights_;
  std::vector<ViewEnsemble> ensembles_;  // by shard, where there are views
  std::vector<std::unique_ptr<CapturedWork>> works_;
  BatchQueue queue_;  // after the works: it waits when destroyed
};

}  // namespace headrace
