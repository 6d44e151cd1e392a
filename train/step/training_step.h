// A training step: what is submitted on each device, in the order of execution.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/collective.h"
#include "headrace/train/step/batch_queue.h"
#include "headrace/train/step/number_checks.h"
#include "headrace/train/step/replica_arenas.h"
#include "headrace/train/step/shards.h"
#include "headrace/train/step/update_plan.h"
#include "headrace/train/trainer.h"

namespace headrace {

// The parts of a step that one call submits, in this order. Parts in one call overlap if a device gains by it; the
// weights are the same however a step is divided into calls.
struct StepParts {
  bool forward = false, backward = false;  // a batch: loss and gradients
  bool reduce = false, update = false;     // after the step's last batch: sums over replicas, optimizer

  bool computes_batch() const noexcept { return forward || backward; }
  auto operator<=>(const StepParts&) const = default;
};
constexpr StepParts kWholeStep{.forward = true, .backward = true, .reduce = true, .update = true};
constexpr StepParts kStepBatch{.forward = true, .backward = true};
constexpr StepParts kStepEnd{.reduce = true, .update = true};

// `index` is a shard for a batch's parts and a replica for those after it; both are the same number unless shards
// are virtual. One thread.
class TrainingStep {
 public:
  TrainingStep(ModelState& model, Loader& loader, const TrainerOptions& options);

  BatchQueue& queue() noexcept { return queue_; }
  const BatchQueue& queue() const noexcept { return queue_; }
  const MirroredProgram& program() const noexcept { return queue_.program(); }
  const Shards& shards() const noexcept { return queue_.shards(); }
  const UpdatePlan& plan() const noexcept { return plan_; }
  const ReplicaArenas& arenas(int replica) const { return arenas_.at(static_cast<std::size_t>(replica)); }
  const std::optional<GradientMeasure>& measure() const noexcept { return measure_; }

  // Returns whether batches and what follows the last of them are submitted by separate calls.
  bool in_parts() const { return accumulates_ || shards().is_virtual() || queue_.waits_for_host_functions(); }
  // Returns the streams in which to capture the parts, including those for what runs beside them.
  ReplicaStreams streams(const StepParts& parts, int index) const;

  // Submits what comes before a step's first batch.
  void begin();
  // Submits zeros to the gradients that the phase no longer computes.
  void zero_unused_gradients(const LearningPhase& phase);
  // Drops the gradients accumulated so far.
  void discard_gradients(int replica) { end_accumulation(replica); }

  // Submits the parts; may be captured. `watch` is called for each layer.
  void submit(const StepParts& parts, int index, const LearningPhase& phase, const ReplicaStreams& streams,
              const ProgramWatch& watch = {});

 private:
  bool updates_early(int replica, const ReplicaStreams& streams) const;
  void update(int replica, std::int64_t begin, std::int64_t end, const ReplicaStreams& streams);
  void average_state_beside(int replica, const ReplicaStreams& streams);
  void average_state(int replica, Stream& stream);
  void accumulate(int shard);
  void end_accumulation(int replica);
  void merge_shards(int replica);

  Strategy& strategy() const noexcept { return *model_.strategy; }
  Kernels& kernels(int replica) const { return shards().kernels(replica); }
  // Returns the replica's scalars in device memory; all of its shards have the same rates.
  const StepScalars* scalars(int replica) const { return program().binding(shards().first_of(replica)).scalars; }
  const ShardArenas& shard_arenas(int replica) const {
    return shard_arenas_.at(static_cast<std::size_t>(replica));
  }
  int within_replica(int shard) const { return shard - shards().first_of(shards().replica_of(shard)); }

  ModelState& model_;
  Collective& collective_;
  bool accumulates_;
  UpdatePlan plan_;
  std::vector<ShardArenas> shard_arenas_;
  std::vector<ReplicaArenas> arenas_;
  std::optional<GradientMeasure> measure_;  // with StepOptions::gradient_norms
  Reducer reducer_;
  BatchQueue queue_;  // after what its work uses: it waits when destroyed
};

// NanPolicy::kTrace: finds the operation of a batch whose result first held a NaN or an infinity.

// Watches the batches that a training step computes. REQUIRES: a batch is checked before the next one is
// submitted, and before its gradients are summed.
class NanTrace {
 public:
  NanTrace(ModelState& model, TrainingStep& step);

  // Submits copies of what the shard needs to be run again. REQUIRES: its batch is in place.
  void keep_inputs(int shard) const;
  // Waits for the batch. If its loss or a gradient is not finite, runs it again and checks every operation's
  // operands and results: throws DataError if a record's input or label is the cause, else Error.
  void check(const LearningPhase& phase);
  // Waits for the update after `step` others. Throws Error naming the first variable that is no longer finite.
  void check_update(std::uint64_t step) const;

 private:
  bool finite(int shard) const;
  void submit_again(int shard, const LearningPhase& phase, NumberProbe& probe) const;
  ProgramWatch watch(int shard, NumberProbe& probe) const;
  void look_at_variables(const LayerContext& call, bool gradients, NumberProbe& probe) const;
  // Returns the names of the terms that are true, or of all if `terms` is empty.
  std::string loss_name(const std::vector<bool>& terms) const;
  // Throws Error if a loss is the cause.
  void name_the_loss() const;
  [[noreturn]] void name_the_first(const std::vector<NumberProbe>& probes) const;
  std::int64_t real_elements(int shard, const TensorView& rows) const;

  ModelState& model_;
  TrainingStep& step_;
  std::vector<int> inputs_;                // layers
  std::vector<std::vector<Buffer>> kept_;  // by shard and input: the input's values
  const StepSlot* last_ = nullptr;         // the last batch that is done
};

}  // namespace headrace
