#include "headrace/train/step/training_step.h"

#include <utility>

#include "headrace/train/step/batch_feed.h"
#include "headrace/train/strategy.h"

namespace headrace {

// The step, from top to bottom. Parts that are left out belong to other calls.
void TrainingStep::submit(const StepParts& parts, int index, const LearningPhase& phase,
                          const ReplicaStreams& streams, const ProgramWatch& watch) {
  const bool overlaps = parts.backward && parts.update && !plan_.clips();  // a clip needs all gradients first
  std::int64_t updated = 0;                                                // elements that the optimizer was given
  const auto update_up_to = [&](std::int64_t end) { update(index, std::exchange(updated, end), end, streams); };

  // Forward: results, loss and metrics, the gradients of the results.
  if (parts.forward) {
    program().forward(index, watch);
    program().submit_objective(index, program().results(index), program().result_gradients(index));
    if (parts.reduce) average_state_beside(index, streams);
  }

  // Backward: gradients. A whole step sums and applies those of the last layers while it computes the others.
  if (parts.backward) {
    const auto filled = [&](std::int64_t elements) {
      if (!parts.reduce) return;
      const std::int64_t summed = reducer_.filled(index, arenas(index).gradients, elements, phase.summed, streams);
      if (overlaps && updates_early(index, streams)) update_up_to(summed);
    };
    program().backward(index, phase.needed, streams, filled, watch);
    if (!parts.reduce) {
      streams.compute.follow(streams.weights);
      if (accumulates_) accumulate(index);
    }
  }

  // Reduce: over the step's batches, over a replica's virtual shards, over replicas.
  if (parts.reduce) {
    end_accumulation(index);
    merge_shards(index);
    if (!parts.forward) average_state_beside(index, streams);
    const std::int64_t summed = reducer_.finish(index, arenas(index).gradients, phase.summed, streams);
    if (overlaps) update_up_to(summed);
    reducer_.join(index, streams);
    if (overlaps) streams.compute.follow(streams.updates);
  }

  // Update: the rest of the variables, then what follows them.
  if (parts.update) {
    const ReplicaArenas& mine = arenas(index);
    if (measure_ && index == 0) measure_->submit(streams.compute, kernels(index), mine.gradients);
    if (plan_.clips()) mine.clip_gradients(streams.compute, kernels(index), phase.learning);
    if (!streams.sums_apart()) average_state(index, streams.compute);
    update(index, updated, mine.gradients.elements(), {.compute = streams.compute});
    mine.follow_update(streams.compute, kernels(index), scalars(index));
  }
}

// Runs the optimizer on the arenas' elements [begin, end). REQUIRES: their gradients and readers were submitted.
void TrainingStep::update(int r, std::int64_t begin, std::int64_t end, const ReplicaStreams& streams) {
  if (begin == end) return;
  streams.updates.follow(streams.compute);
  streams.updates.follow(streams.weights);
  program().submit_failures(r, streams.updates);
  plan_.submit(streams.updates, kernels(r), arenas(r), begin, end, scalars(r));
}

// Returns whether to update a slice as soon as it is summed: on a CPU while it is in the cache, elsewhere if that
// runs beside the backward pass. Otherwise all slices are updated at once, with few launches.
bool TrainingStep::updates_early(int r, const ReplicaStreams& streams) const {
  return strategy().device(r).info().host_memory || streams.updates_apart();
}

// Averages the running statistics over replicas beside other work: they are final after the forward pass, and the
// next one reads them.
void TrainingStep::average_state_beside(int r, const ReplicaStreams& streams) {
  if (!streams.sums_apart()) return;
  streams.communication.follow(streams.compute);
  average_state(r, streams.communication);
}

void TrainingStep::average_state(int r, Stream& stream) {
  arenas(r).average_state(collective_, r, stream, kernels(r), shard_arenas(r));
}

// Adds the batch's gradients to those accumulated so far in the step.
void TrainingStep::accumulate(int shard) {
  const int r = shards().replica_of(shard);
  Stream& stream = shards().stream(shard);
  if (!shards().is_virtual()) return arenas(r).accumulate(stream, kernels(r));
  shard_arenas(r).accumulate(stream, kernels(r), within_replica(shard));
}

// Replaces each shard's gradients by the accumulated ones over the examples of all of the step's batches.
void TrainingStep::end_accumulation(int r) {
  if (!accumulates_) return;
  Stream& stream = strategy().stream(r);
  for (int shard = shards().first_of(r); shard < shards().first_of(r + 1); ++shard) {
    const float* scale = program().group_scale(shard);
    if (!shards().is_virtual()) return arenas(r).begin_group_update(stream, kernels(r), scale);
    shard_arenas(r).end_group(stream, kernels(r), within_replica(shard), scale);
  }
}

// Sums the gradients of the replica's virtual shards: the leaves below it of one tree over all of them.
void TrainingStep::merge_shards(int r) {
  if (shards().is_virtual()) shard_arenas(r).sum_gradients(strategy().stream(r), kernels(r), arenas(r).gradients);
}

// A virtual shard's work is one chain. Nothing runs beside sums or updates that have their own call.
ReplicaStreams TrainingStep::streams(const StepParts& parts, int index) const {
  if (parts.computes_batch()) {
    if (shards().is_virtual()) return {.compute = shards().stream(index)};
    return strategy().streams(index);
  }
  const ReplicaStreams all = strategy().streams(index);
  if (parts != kStepEnd) return {.compute = all.compute};
  return {.compute = all.compute, .communication = all.communication};
}

void TrainingStep::begin() {
  if (!shards().is_virtual()) return;
  for (int shard = 0; shard < shards().local_shards(); ++shard) {
    shards().follow_replica(shard);
    shard_arenas(shards().replica_of(shard)).begin_step(shards().stream(shard), within_replica(shard));
  }
}

void TrainingStep::zero_unused_gradients(const LearningPhase& phase) {
  for (int r = 0; r < strategy().local_replicas(); ++r) {
    for (const auto& [begin, end] : phase.zeroed) {
      const TensorView unused = arenas(r).slice(begin, end).gradients;
      strategy().stream(r).fill(unused.data, 0, unused.bytes());
      shard_arenas(r).clear_gradients(strategy().stream(r), begin, end);
    }
  }
}

namespace {

// Virtual shards need sums whose order does not depend on the devices.
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
      reducer_(collective_, model.layout.trained_elements(), options.buckets),
      queue_(model, loader.fields(),
             {.program = {.mode = Mode::kTrain,
                          .rows = rows_of_batches(loader),
                          .precision = model.compiled->precision,
                          .seed = options.seed},
              .loss = model.compiled->loss,
              .metrics = model.compiled->metrics,
              .in_flight = options.in_flight,
              .burst = loader.burst(),
              .nan = options.step.nan,
              .trace = options.trace,
              .virtual_shards = options.step.virtual_shards,
              .shard_arenas = &shard_arenas_}) {
  queue_.time_sums(reducer_);
  if (options.step.gradient_norms) measure_.emplace(model);
}

}  // namespace headrace
