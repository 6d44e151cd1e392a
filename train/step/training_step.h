// A step of training: what is submitted on each device, in the order of execution.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "headrace/devices/collective.h"
#include "headrace/train/reducer.h"
#include "headrace/train/step/batch_runner.h"
#include "headrace/train/step/gradient_measure.h"
#include "headrace/train/step/learning_phases.h"
#include "headrace/train/step/replica_arenas.h"
#include "headrace/train/step/shard_arenas.h"
#include "headrace/train/step/update_plan.h"
#include "headrace/train/trainer.h"

namespace headrace {

// Functions with a replica or a shard submit to its stream, and may be captured, but for begin() and silence().
class TrainingStep {
 public:
  TrainingStep(ModelState& model, Loader& loader, const TrainerOptions& options);

  BatchRunner& runner() noexcept { return runner_; }
  const BatchRunner& runner() const noexcept { return runner_; }
  const Shards& shards() const noexcept { return runner_.shards(); }
  const UpdatePlan& plan() const noexcept { return plan_; }
  const ReplicaArenas& arenas(int replica) const { return arenas_.at(static_cast<std::size_t>(replica)); }
  const std::optional<GradientMeasure>& measure() const noexcept { return measure_; }

  // Whether a step has two parts: its batches, and what follows the last of them.
  bool in_parts() const { return accumulates_ || shards().is_virtual(); }
  // Where a shard's work goes once it is captured: a virtual shard's is one chain.
  ReplicaStreams streams(int shard) const;

  // Before a step's first batch.
  void begin();
  // What does not learn from here on has gradients of 0.
  void silence(const LearningPhase& phase);

  // A whole step, from the batch in place to the new weights.
  void submit_whole(int replica, const LearningPhase& phase, const ReplicaStreams& streams);
  // Of a step in parts: a batch, and what follows the last one.
  void submit_batch(int shard, const LearningPhase& phase, const ReplicaStreams& streams);
  void submit_rest(int replica, const LearningPhase& phase, const ReplicaStreams& streams);

  // The same in pieces, for loops that look in between.
  void submit_forward(int shard);
  void submit_backward(int shard, const LearningPhase& phase, const ReplicaStreams& streams);
  void submit_all_reduce(int replica, const LearningPhase& phase);
  void submit_update(int replica, const LearningPhase& phase);
  void submit_discard(int replica) { end_accumulation(replica); }

 private:
  // `filled(n)` as Program::backward() has it.
  void backward(int shard, const LearningPhase& phase, const ReplicaStreams& streams,
                const std::function<void(std::int64_t)>& filled);
  void accumulate(int shard);
  void end_accumulation(int replica);
  void merge_shards(int replica);
  bool updates_early(int replica, const ReplicaStreams& streams) const;
  void update(int replica, std::int64_t begin, std::int64_t end, const ReplicaStreams& streams);
  void update_rest(int replica, std::int64_t begin, const LearningPhase& phase);
  void average_state(int replica, Stream& stream);
  void average_state_beside(int replica, const ReplicaStreams& streams);

  Strategy& strategy() const noexcept { return *model_.strategy; }
  Kernels& kernels(int replica) const { return shards().kernels(replica); }
  // In a replica's memory: what all of its shards' have in common.
  const StepScalars* scalars(int replica) const { return runner_.binding(shards().first_of(replica)).scalars; }
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
  BatchRunner runner_;                      // after what its work uses: it waits when destroyed
  Reducer reducer_;
};

}  // namespace headrace
