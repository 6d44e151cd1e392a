// The synchronous step over all replicas: what fit() runs, and its parts for a custom training loop.
//
//   Loader loader(data, devices, {.epochs = 3});
//   Trainer trainer(strategy, model, loader);
//   while (trainer.step()) {}                       // or, the same in pieces:
//   while (auto batches = trainer.take()) {
//     trainer.gradients(std::move(*batches));       // forward, loss, backward on every replica
//     trainer.all_reduce();                         // merge
//     trainer.apply_gradients();                    // update
//   }
//                                                   // gradients() in pieces, for custom losses or gradients:
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

#include <atomic>
#include <cstdint>
#include <deque>
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

// The buckets in which Reducer sums the replicas' gradients as the backward pass fills them.
struct ReducerOptions {
  std::int64_t bucket_bytes = std::int64_t{8} << 20;
  // For replicas that sum or update beside the backward pass: nothing hides the last bucket.
  std::int64_t bucket_bytes_apart = std::int64_t{2} << 20;
  std::int64_t bucket_bytes_workers = std::int64_t{256} << 10;  // the same on CPUs, between processes
};

// Elements [begin, end) of an arena.
struct ArenaSlice {
  std::int64_t begin = 0, end = 0;
};

// Sums gradients over replicas. They lie in one arena in the order in which the backward pass finishes them, so
// that a bucket is a slice and nothing is copied. One object serves all local replicas; each makes the same calls:
// filled() any number of times, finish(), join(). In a world of one replica nothing is sent. `wanted` are the
// slices to sum, ascending and without overlap, the same in all calls up to join(); gradients between them, which
// nothing updates, stay each replica's own. Gradients are final in the combined order of the compute and weights
// streams. If sums are apart, the communication stream waits for a bucket's gradients and sums it beside later
// work; the calls then belong in one capture of the compute stream. REQUIRES: it outlives the work that it
// submitted.
class Reducer {
 public:
  Reducer(Collective& collective, std::int64_t elements, const ReducerOptions& options = {});

  // Sends the buckets that are now full. REQUIRES: the arena's elements [0, filled) are final on this replica.
  // Returns n: from here on, in the combined order of the compute and weights streams, the wanted ones of the
  // elements [0, n) are sums over the world's replicas.
  std::int64_t filled(int replica, const TensorView& arena, std::int64_t filled,
                      std::span<const ArenaSlice> wanted, const ReplicaStreams& streams);
  // Sends the rest. Returns n as filled() does: if sums are apart, all that was sent before.
  std::int64_t finish(int replica, const TensorView& arena, std::span<const ArenaSlice> wanted,
                      const ReplicaStreams& streams);
  // From here on, in the order of the compute stream alone, all wanted elements are sums and the communication
  // stream's work is done. The next call starts over.
  void join(int replica, const ReplicaStreams& streams);

  // The time of a replica's sums since this object was made, and for how much of it the compute stream had nothing
  // else to do. Measured on CPUs, if sums are apart; otherwise 0.
  struct Times {
    std::int64_t sums_ns = 0, exposed_ns = 0;
  };
  Times times(int replica) const noexcept;

 private:
  // Of one replica. Its streams' threads write.
  struct Watch {
    std::atomic<std::int64_t> sums_ns{0}, exposed_ns{0};
    std::uint64_t summing_since = 0, waiting_since = 0;
  };
  void send(int replica, const TensorView& arena, std::int64_t end, std::span<const ArenaSlice> wanted,
            const ReplicaStreams& streams);
  std::int64_t bucket_size(const ReplicaStreams& streams) const;
  void wait_for_sums(int replica, const ReplicaStreams& streams);
  // Returns null where nothing is measured.
  Watch* watch(int replica, const ReplicaStreams& streams);

  Collective* collective_;
  std::int64_t elements_;
  std::int64_t bucket_, bucket_apart_, bucket_workers_;  // elements
  std::vector<std::int64_t> sent_;                       // by local replica
  std::deque<Watch> watches_;                            // by local replica
};

struct TrainerOptions {
  std::uint64_t seed = 0;  // for dropout
  // With `accumulate`, gradients() may be called several times per step. With `virtual_shards`, the loader has the
  // strategy's devices repeated() for that many shards, and forward() and backward() come as gradients().
  StepOptions step = {};
  // Batches submitted ahead of the slowest replica; 0: 3, or the loader's burst() if that is more.
  int in_flight = 0;
  // The number of the first optimizer step for schedules and dropout; std::nullopt: the model continues from its
  // own. LoaderOptions::start does the same for the data.
  std::optional<std::uint64_t> first_step = std::nullopt;
  ReducerOptions buckets = {};
  std::shared_ptr<Trace> trace = {};  // receives a ring for each replica's device; null: nothing is traced
};

// One thread drives all replicas. A call submits and returns; it waits only while `in_flight` batches are
// unfinished. Errors of submitted work are thrown once, by a later call, with replica and step.
class Trainer {
 public:
  // Throws ConfigError if the model is not compiled or belongs to another strategy, if the loader is on other
  // devices, or if the data do not fit the net. REQUIRES: all arguments outlive the trainer.
  Trainer(Strategy& strategy, Model& model, Loader& loader, const TrainerOptions& options = {});
  ~Trainer();  // waits for submitted work
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  // Runs every recorded step once without examples and undoes its changes, so that devices have loaded their
  // kernels. For callers who time training, before the first step. Changes no result. Waits.
  void warm_up();

  // Makes one update from the next `accumulate` batches (fewer at a pass's end). Returns false if none is left.
  bool step();

  // The step in pieces, each recorded on its first call and launched from then on. Throws ConfigError if the order
  // would lose gradients or use them twice. While gradients accumulate, those of several batches are added before
  // one all_reduce(), which divides by their examples: the step is that of one batch of all of them.
  std::optional<GlobalBatch> take();
  void gradients(GlobalBatch batches);  // forward() and backward()
  const ForwardPass& forward(GlobalBatch batches);
  void backward();
  void all_reduce();
  void apply_gradients();
  // Drops the gradients instead of an update, if they were only needed for inspection.
  void discard_gradients();

  // Returns the gradient of a trained variable that is not frozen, in a replica's device memory: after backward()
  // (not with virtual shards) the replica's own part of the last batch, after all_reduce() the step's. Values
  // written there before apply_gradients() must be the same on all replicas.
  TensorView gradient(const std::string& variable, int replica) const;

  // Returns sums over the batches since the last reset, as far as they are known without waiting; of several
  // workers, over this one's.
  MetricSums progress() const;
  // Returns the metrics of these batches, as in EpochReport::metrics; metrics with tables only after finish().
  std::vector<MetricValue> metrics() const;
  // Waits for all submitted work, throws its errors, and returns progress(), over all workers: each makes the
  // call.
  MetricSums finish();
  void reset_metrics();

  // Saves what each replica's metrics have counted since the last reset, and continues counting from it: for
  // checkpoints, between two steps (step/step_slot.h).
  int saved_sets() const noexcept;  // per replica
  std::size_t saved_set_bytes() const noexcept;
  void save_totals(int replica, std::byte* into) const;
  std::vector<std::vector<std::byte>> gather_totals();  // of all workers, which all make the call
  void restore_totals(const std::vector<std::vector<std::byte>>& saved);

  // Returns the times of those batches since the last reset that are known to be done.
  StepTimes times() const noexcept;
  // Returns the times of each replica.
  std::vector<StepTimes> replica_times() const;
  // Waits for the last step and returns its norms. Without StepOptions::gradient_norms: only `all`, over the
  // gradients that the limit counts, if the optimizer limits the norm, otherwise std::nullopt.
  std::optional<GradientNorms> gradient_norms() const;

 private:
  class HEADRACE_HIDDEN Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace
