// The synchronous step over all replicas: what fit() runs, and the pieces for a training loop of your own.
//
//   Loader loader(data, devices, {.epochs = 3});
//   Trainer trainer(strategy, model, loader);
//   while (trainer.step()) {}                       // or, the same in pieces:
//   while (auto batches = trainer.take()) {
//     trainer.gradients(std::move(*batches));       // forward, loss, backward on every replica
//     trainer.all_reduce();                         // merge
//     trainer.apply_gradients();                    // update
//   }
//   MetricSums sums = trainer.finish();
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/devices/base/trace.h"
#include "headrace/pipeline/loader.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/metrics.h"
#include "headrace/train/model.h"
#include "headrace/train/reducer.h"
#include "headrace/train/step_times.h"

namespace headrace {

struct TrainerOptions {
  std::uint64_t seed = 0;  // of dropout
  int accumulate = 1;      // batches a step()
  int in_flight = 3;       // batches submitted ahead of the slowest replica
  NanPolicy nan = NanPolicy::kStop;
  std::uint64_t mirror_check_every = 0;
  ReducerOptions buckets = {};
  std::shared_ptr<Trace> trace = {};  // is given a ring for each replica's device; null: nothing is traced
};

// One global batch: every replica's share, in replica order.
using GlobalBatch = std::vector<Batch>;

// One thread drives all replicas. A call submits and returns; it waits only while `in_flight` batches are
// unfinished. Errors of submitted work surface in a later call, once, with replica and step.
class Trainer {
 public:
  // ConfigError for a model of another strategy or not compiled, and for data that does not fit the net.
  // Everything given must outlive the trainer.
  Trainer(Strategy& strategy, Model& model, Loader& loader, const TrainerOptions& options = {});
  ~Trainer();  // waits for what was submitted
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Before the first step, for callers who time training: runs every recorded step once without examples and puts
  // back what it changed, so that a device has loaded its kernels. Changes no result. Waits.
  void warm_up();

  // One update from the next `accumulate` batches (fewer at the end of a pass); false at the end of the data.
  bool step();

  // The step in pieces. gradients() overwrites the gradients.
  std::optional<GlobalBatch> take();
  void gradients(GlobalBatch batches);
  void all_reduce();
  void apply_gradients();

  // Sums over the batches since the last reset, as far as they are known without waiting.
  MetricSums progress() const;
  // Of the same batches, the metrics that the model was compiled with, in their order. Those with tables are there
  // after finish().
  std::vector<MetricValue> metrics() const;
  // The same after waiting for everything submitted, whose errors surface here.
  MetricSums finish();
  void reset_metrics();

  // For checkpoints, between two steps: what the metrics have counted since the last reset, of each replica, and
  // counting on from it (engine/batch_runner.h).
  std::size_t saved_totals_bytes() const noexcept;
  void save_totals(int replica, std::byte* into) const;
  void restore_totals(const std::vector<std::vector<std::byte>>& saved);

  // Of the batches since the last reset that are known to be done.
  StepTimes times() const noexcept;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
