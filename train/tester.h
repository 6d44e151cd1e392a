// Forward passes of a training loop of your own: what evaluate() runs, a batch at a time.
//
//   Loader loader(test, devices);
//   Tester tester(strategy, model, loader);
//   while (tester.step()) {}
//   MetricSums sums = tester.finish();
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "headrace/pipeline/loader.h"
#include "headrace/train/forward_pass.h"
#include "headrace/train/metrics.h"
#include "headrace/train/model.h"

namespace headrace {

// With the weights as they are when a batch is submitted. One thread; errors as a Trainer's.
class Tester {
 public:
  // As Trainer's.
  Tester(Strategy& strategy, Model& model, Loader& loader);
  ~Tester();  // waits for what was submitted
  Tester(const Tester&) = delete;
  Tester& operator=(const Tester&) = delete;

  // Submits the next batch; false at the end of the data.
  bool step();
  // The same in pieces.
  std::optional<GlobalBatch> take();
  const ForwardPass& forward(GlobalBatch batches);

  // Over the batches since the last reset: waits for them. metrics() are as in EpochReport.
  MetricSums finish();
  std::vector<MetricValue> metrics() const;
  void reset_metrics();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
