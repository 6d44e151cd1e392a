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
//                                                   // gradients() in pieces, for a loss or gradients of your own:
//   const ForwardPass& pass = trainer.forward(std::move(*batches));
//   auto losses = strategy.run([&](const ReplicaContext& replica) {
//     std::vector<float> predictions = replica.read<float>(pass.predictions(replica.index));
//     ...
//     replica.write<float>(pass.prediction_gradients(replica.index), by_predictions);
//     return compute_average_loss(per_example, pass.global_examples());
//   });
//   trainer.backward();
//   MetricSums sums = trainer.finish();
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/trace.h"
#include "headrace/devices/collective.h"
#include "headrace/pipeline/loader.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/metrics.h"
#include "headrace/train/model.h"
#include "headrace/train/strategy.h"

namespace HEADRACE_API headrace {

// How Reducer sums the replicas' gradients, in buckets as the backward pass fills them.
struct ReducerOptions {
  std::int64_t bucket_bytes = std::int64_t{8} << 20;
  // Of replicas that sum, or that update, beside the backward pass: the last bucket is what nothing hides.
  std::int64_t bucket_bytes_apart = std::int64_t{2} << 20;
};

// Elements [begin, end) of an arena.
struct ArenaSlice {
  std::int64_t begin = 0, end = 0;
};

// Gradients lie in one arena in the order in which the backward pass finishes them, so that a bucket is a slice:
// no copies. One object for all local replicas; each makes the same calls: filled() as often as it likes,
// finish(), join(). In a world of one nothing is sent. `wanted` are the slices that are summed, in ascending order
// without overlap, the same in all calls up to join(); what lies between them is what nobody updates, and stays
// each replica's own. Gradients are final in the order of the compute stream and that of the weights together.
// Where sums are apart, the communication stream waits for a bucket's gradients and sums it beside what the others
// do next; the calls then belong into one capture of the compute stream.
class Reducer {
 public:
  Reducer(Collective& collective, std::int64_t elements, const ReducerOptions& options = {});

  // The arena's elements [0, filled) are final on this replica: sends the buckets that are now full. Returns n:
  // in the order of the compute stream and that of the weights together, the wanted ones of the elements [0, n)
  // are sums over the world's replicas from here on.
  std::int64_t filled(int replica, const TensorView& arena, std::int64_t filled,
                      std::span<const ArenaSlice> wanted, const ReplicaStreams& streams);
  // Sends the rest. Returns n as filled() does: where sums are apart, all that was sent before.
  std::int64_t finish(int replica, const TensorView& arena, std::span<const ArenaSlice> wanted,
                      const ReplicaStreams& streams);
  // From here on the whole arena is, in the order of the compute stream alone, and whatever the communication
  // stream was given is done. The next call starts again.
  void join(int replica, const ReplicaStreams& streams);

 private:
  void send(int replica, const TensorView& arena, std::int64_t end, std::span<const ArenaSlice> wanted,
            const ReplicaStreams& streams);

  Collective* collective_;
  std::int64_t elements_;
  std::int64_t bucket_, bucket_apart_;  // elements
  std::vector<std::int64_t> sent_;      // of each local replica
};

struct TrainerOptions {
  std::uint64_t seed = 0;  // of dropout
  // With `accumulate` gradients() may be called several times a step. With `virtual_shards` the loader has the
  // strategy's devices repeated() for as many shards, and forward() and backward() come together, as gradients().
  StepOptions step = {};
  int in_flight = 3;  // batches submitted ahead of the slowest replica
  // The optimizer step that the first one counts as, in schedules and for dropout; nothing: the model goes on from
  // its own. LoaderOptions::start is the same for the data.
  std::optional<std::uint64_t> first_step = std::nullopt;
  ReducerOptions buckets = {};
  std::shared_ptr<Trace> trace = {};  // is given a ring for each replica's device; null: nothing is traced
};

// One thread drives all replicas. A call submits and returns; it waits only while `in_flight` batches are
// unfinished. Errors of submitted work surface in a later call, once, with replica and step.
class Trainer {
 public:
  // ConfigError for a model of another strategy or not compiled, for a loader on other devices, and for data that
  // does not fit the net.
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

  // The step in pieces, each recorded when it is first called and launched from then on; ConfigError for an order
  // in which gradients would be lost or used twice. While gradients accumulate, those of several batches are added
  // before one all_reduce(), which divides by their examples: the step of one batch of all of them.
  std::optional<GlobalBatch> take();
  void gradients(GlobalBatch batches);  // forward() and backward()
  const ForwardPass& forward(GlobalBatch batches);
  void backward();
  void all_reduce();
  void apply_gradients();
  // Instead of an update: drops the gradients there are, which were only to be looked at.
  void discard_gradients();

  // The gradient of a trained variable that is not frozen, in a replica's device memory: the replica's own part,
  // of the last batch, after backward() (not with virtual shards), the step's after all_reduce(). What is written
  // there before apply_gradients() must be the same on all replicas.
  TensorView gradient(const std::string& variable, int replica) const;

  // Returns sums over the batches since the last reset, as far as they are known without waiting.
  MetricSums progress() const;
  // Returns the metrics of these batches, as EpochReport::metrics; metrics with tables after finish().
  std::vector<MetricValue> metrics() const;
  // Waits for everything submitted, whose errors surface here, and returns progress().
  MetricSums finish();
  void reset_metrics();

  // For checkpoints, between two steps: what the metrics have counted since the last reset, of each replica, and
  // counting on from it (step/running_totals.h).
  int saved_sets() const noexcept;  // a replica
  std::size_t saved_set_bytes() const noexcept;
  void save_totals(int replica, std::byte* into) const;
  void restore_totals(const std::vector<std::vector<std::byte>>& saved);

  // Returns the times of the batches since the last reset that are known to be done.
  StepTimes times() const noexcept;
  // Returns the times of each replica.
  std::vector<StepTimes> replica_times() const;
  // Waits for the last step and returns its norms. With StepOptions::gradient_norms; else only `all` where the
  // optimizer limits the norm, of what it counts, and there nothing at all.
  std::optional<GradientNorms> gradient_norms() const;

 private:
  class HEADRACE_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
