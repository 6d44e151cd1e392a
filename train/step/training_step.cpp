#include "headrace/train/step/training_step.h"

#include <utility>

#include "headrace/train/strategy.h"

namespace headrace {
namespace {

// Virtual shards want sums whose order does not depend on the devices.
Collective& collective_for(const ModelState& model, const TrainerOptions& options) {
  Collective& collective = model.strategy->collective();
  return options.step.virtual_shards > 0 && collective.world_replicas() > 1 ? collective.in_order() : collective;
}

std::vector<ShardArenas> make_shard_arenas(const ModelState& model, const TrainerOptions& options) {
  const Shards shards(*model.strategy, options.step.virtual_shards);
  std::vector<ShardArenas> arenas;
  for (int r = 0; r < model.strategy->local_replicas(); ++r) {
    arenas.emplace_back(model, shards, r, options.step.accumulate > 1);
  }
  return arenas;
}

std::vector<ReplicaArenas> make_arenas(ModelState& model, const UpdatePlan& plan, const TrainerOptions& options) {
  const bool accumulates =
      options.step.accumulate > 1 && options.step.virtual_shards == 0;  // else each shard does
  std::vector<ReplicaArenas> arenas;
  for (int r = 0; r < model.strategy->local_replicas(); ++r) {
    const auto [elements, arrays] = plan.scratch(model.strategy->device(r).info().host_memory);
    arenas.emplace_back(model, r, arrays, elements, accumulates);
  }
  return arenas;
}

}  // namespace

TrainingStep::TrainingStep(ModelState& model, Loader& loader, const TrainerOptions& options)
    : model_(model),
      collective_(collective_for(model, options)),
      accumulates_(options.step.accumulate > 1),
      plan_(*model.graph, model.layout, model.compiled->optimizer),
      shard_arenas_(make_shard_arenas(model, options)),
      arenas_(make_arenas(model, plan_, options)),
      runner_(model, loader.fields(),
              {.program = {.mode = Mode::kTrain,
                           .rows = loader.local_rows(),
                           .precision = model.compiled->precision,
                           .seed = options.seed},
               .loss = model.compiled->loss,
               .metrics = model.compiled->metrics,
               .in_flight = options.in_flight,
               .nan = options.step.nan,
               .trace = options.trace,
               .virtual_shards = options.step.virtual_shards,
               .shard_arenas = &shard_arenas_}),
      reducer_(collective_, model.layout.trained_elements(), options.buckets) {
  if (options.step.gradient_norms) measure_.emplace(model);
}

void TrainingStep::begin() {
  if (!shards().is_virtual()) return;
  for (int shard = 0; shard < shards().local_shards(); ++shard) {
    shards().follow_replica(shard);
    shard_arenas(shards().replica_of(shard)).begin_step(shards().stream(shard), within_replica(shard));
  }
}

void TrainingStep::silence(const LearningPhase& phase) {
  for (int r = 0; r < strategy().local_replicas(); ++r) {
    for (const auto& [begin, end] : phase.silent) {
      const TensorView silent = arenas(r).slice(begin, end).gradients;
      strategy().stream(r).fill(silent.data, 0, silent.bytes());
      shard_arenas(r).clear_gradients(strategy().stream(r), begin, end);
    }
  }
}

void TrainingStep::submit_whole(int r, const LearningPhase& phase, const ReplicaStreams& streams) {
  const TensorView& gradients = arenas(r).gradients;
  std::int64_t updated = 0;
  submit_forward(r);
  if (streams.sums_apart()) average_state_beside(r, streams);
  backward(r, phase, streams, [&](std::int64_t filled) {
    const std::int64_t summed = reducer_.filled(r, gradients, filled, phase.summed, streams);
    if (updates_early(r, streams)) update(r, std::exchange(updated, summed), summed, streams);
  });
  const std::int64_t summed = reducer_.finish(r, gradients, phase.summed, streams);
  if (!plan_.clips()) update(r, std::exchange(updated, summed), summed, streams);
  reducer_.join(r, streams);
  if (!plan_.clips()) streams.compute.follow(streams.updates);
  update_rest(r, updated, phase);
  if (!streams.sums_apart()) average_state(r, streams.compute);
}

void TrainingStep::submit_batch(int shard, const LearningPhase& phase, const ReplicaStreams& streams) {
  submit_forward(shard);
  submit_backward(shard, phase, streams);
}

void TrainingStep::submit_rest(int r, const LearningPhase& phase, const ReplicaStreams& streams) {
  end_accumulation(r);
  merge_shards(r);
  const ReplicaStreams sums{.compute = streams.compute, .communication = streams.communication};
  if (sums.sums_apart()) average_state_beside(r, sums);
  reducer_.finish(r, arenas(r).gradients, phase.summed, sums);
  reducer_.join(r, sums);
  update_rest(r, 0, phase);
  if (!streams.sums_apart()) average_state(r, streams.compute);
}

void TrainingStep::submit_forward(int shard) {
  const Program& program = runner_.program();
  const ProgramBinding bound = runner_.binding(shard);
  program.forward(bound);
  runner_.submit_objective(shard, program.results(bound), program.result_gradients(bound));
}

void TrainingStep::submit_backward(int shard, const LearningPhase& phase, const ReplicaStreams& streams) {
  backward(shard, phase, streams, [](std::int64_t) {});
  streams.compute.follow(streams.weights);
  if (accumulates_) accumulate(shard);
}

// There is nothing to run beside it.
void TrainingStep::submit_all_reduce(int r, const LearningPhase& phase) {
  const ReplicaStreams one{.compute = strategy().stream(r)};
  end_accumulation(r);
  merge_shards(r);
  reducer_.finish(r, arenas(r).gradients, phase.summed, one);
  reducer_.join(r, one);
}

void TrainingStep::submit_update(int r, const LearningPhase& phase) {
  update_rest(r, 0, phase);
  average_state(r, strategy().stream(r));
}

void TrainingStep::backward(int shard, const LearningPhase& phase, const ReplicaStreams& streams,
                            const std::function<void(std::int64_t)>& filled) {
  ProgramBinding bound = runner_.binding(shard);
  if (streams.weights_apart()) bound.beside = &streams.weights;
  runner_.program().backward(bound, phase.needed, filled);
}

// Adds the batch's gradients to those of the step so far.
void TrainingStep::accumulate(int shard) {
  const int r = shards().replica_of(shard);
  Stream& stream = shards().stream(shard);
  if (!shards().is_virtual()) return arenas(r).accumulate(stream, kernels(r));
  shard_arenas(r).accumulate(stream, kernels(r), within_replica(shard));
}

// The step's gradients, of each shard, are the accumulated ones over the examples in all of its batches.
void TrainingStep::end_accumulation(int r) {
  if (!accumulates_) return;
  Stream& stream = strategy().stream(r);
  for (int shard = shards().first_of(r); shard < shards().first_of(r + 1); ++shard) {
    const float* scale = runner_.group_scale(shard);
    if (!shards().is_virtual()) return arenas(r).begin_group_update(stream, kernels(r), scale);
    shard_arenas(r).end_group(stream, kernels(r), within_replica(shard), scale);
  }
}

// The replica's gradients become the sum over its virtual shards: the leaves below it of one tree over all.
void TrainingStep::merge_shards(int r) {
  if (shards().is_virtual()) shard_arenas(r).sum_gradients(strategy().stream(r), kernels(r), arenas(r).gradients);
}

ReplicaStreams TrainingStep::streams(int shard) const {
  if (shards().is_virtual()) return {.compute = shards().stream(shard)};
  return strategy().streams(shard);
}

// On a CPU a slice is updated as soon as it is summed, while it is still in the cache; elsewhere beside the rest
// of the backward pass, or as many as there are at once, with few launches. A clip needs all of them first.
bool TrainingStep::updates_early(int r, const ReplicaStreams& streams) const {
  return (strategy().device(r).info().host_memory || streams.updates_apart()) && !plan_.clips();
}

// The optimizer on the arenas' elements [begin, end), whose gradients and readers were submitted.
void TrainingStep::update(int r, std::int64_t begin, std::int64_t end, const ReplicaStreams& streams) {
  if (begin == end) return;
  streams.updates.follow(streams.compute);
  streams.updates.follow(streams.weights);
  plan_.submit(streams.updates, kernels(r), arenas(r), begin, end, scalars(r));
}

// All gradients are sums over replicas, the same on each, and those before `begin` were used.
void TrainingStep::update_rest(int r, std::int64_t begin, const LearningPhase& phase) {
  Stream& stream = strategy().stream(r);
  const ReplicaArenas& mine = arenas(r);
  if (measure_ && r == 0) measure_->submit(stream, kernels(r), mine.gradients);
  if (plan_.clips()) mine.clip_gradients(stream, kernels(r), phase.learning);
  update(r, begin, mine.gradients.elements(), {.compute = stream});
  mine.follow_update(stream, kernels(r), scalars(r));
}

// What is not trained becomes its mean over the world's replicas.
void TrainingStep::average_state(int r, Stream& stream) {
  arenas(r).average_state(collective_, r, stream, kernels(r), shard_arenas(r));
}

// It is final once the forward pass is done, and read by the next one.
void TrainingStep::average_state_beside(int r, const ReplicaStreams& streams) {
  streams.communication.follow(streams.compute);
  average_state(r, streams.communication);
}

}  // namespace headrace
