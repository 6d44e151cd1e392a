#include "headrace/train/step/mirrored_program.h"

#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/train/model/optimizer_memory.h"
#include "headrace/train/model/value_types.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

std::optional<Objective> make_objective(const ModelState& model, const Fields& fields,
                                        const BatchQueueOptions& options) {
  if (!options.loss) return std::nullopt;
  return Objective(*model.graph, *options.loss, options.metrics, fields, options.program.rows);
}

ProgramOptions program_options(const ModelState& model, const BatchQueueOptions& options) {
  ProgramOptions program = options.program;
  program.world_replicas = model.strategy->world_replicas();
  program.activations = storage_types(*model.strategy, program.precision).activations;
  program.variables_beside =
      program.mode == Mode::kTrain && options.virtual_shards == 0 && model.strategy->streams(0).weights_apart();
  if (options.loss) program.leaves_out_softmax = leaves_out_softmax(*model.graph, *options.loss);
  return program;
}

std::vector<const Kernels*> kernels_of(const Strategy& strategy) {
  std::vector<const Kernels*> kernels;
  for (int r = 0; r < strategy.local_replicas(); ++r) kernels.push_back(strategy.device(r).kernels());
  return kernels;
}

}  // namespace

BlockLayout::BlockLayout(const Objective* objective)
    : totals_bytes(objective ? objective->totals_bytes() : sizeof(MetricSums)),
      tables_bytes(objective ? objective->tables_bytes() : 0),
      labels(kTotals + whole_lines(totals_bytes)),
      tables(labels + (objective ? objective->labels_bytes() : 0)),
      bytes(tables + tables_bytes) {}

MirroredProgram::MirroredProgram(ModelState& model, const Fields& fields, const BatchQueueOptions& options)
    : model_(model),
      averaged_weights_(options.averaged_weights),
      shard_arenas_(options.shard_arenas),
      shards_(*model.strategy, options.virtual_shards),
      objective_(make_objective(model, fields, options)),
      program_(*model.graph, model.layout, program_options(model, options), kernels_of(*model.strategy)),
      layout_(objective()) {
  if (averaged_weights_) require_average(model);
  make_groups();
  allocate();
}

// Sums use the communication stream, like gradients, so that all of a replica's sums are in one order.
void MirroredProgram::make_groups() {
  const int world = model_.strategy->world_replicas(), first = model_.strategy->first_replica();
  if (program_.options().mode != Mode::kTrain || world == 1 || shards_.is_virtual()) return;
  for (int r = 0; r < model_.strategy->local_replicas(); ++r) {
    groups_.push_back({.world_replicas = world, .replica = first + r, .sum = [this, r](const TensorView& tensor) {
                         const ReplicaStreams streams = model_.strategy->streams(r);
                         if (streams.sums_apart()) streams.communication.follow(streams.compute);
                         model_.strategy->collective().all_reduce_sum(r, tensor, streams.communication);
                         if (streams.sums_apart()) streams.compute.follow(streams.communication);
                       }});
  }
}

void MirroredProgram::allocate() {
  workspaces_.resize(static_cast<std::size_t>(shards_.lanes()));
  for (int shard = 0; shard < shards_.local_shards(); ++shard) {
    Stream& stream = shards_.stream(shard);
    ShardMemory memory{.block = stream.allocate(layout_.bytes)};
    const std::size_t scratch = objective_ ? objective_->device_scratch_bytes() : 0;
    const std::size_t pinned = objective_ ? objective_->pinned_scratch_bytes() : 0;
    if (scratch > 0) memory.scratch = stream.allocate(scratch);
    if (pinned > 0) memory.pinned_scratch = stream.device().allocate_pinned(pinned);
    memory_.push_back(std::move(memory));
    clear_block(shard);
    Buffer& workspace = workspaces_[static_cast<std::size_t>(shards_.lane_of(shard))];
    if (workspace) continue;
    workspace = stream.allocate(program_.workspace_bytes());
    // Rows that no batch has filled yet are read as padding and must be finite.
    stream.fill(workspace.data(), 0, workspace.size());
  }
}

ProgramBinding MirroredProgram::binding(int shard) const {
  const int replica = shards_.replica_of(shard);
  const auto index = static_cast<std::size_t>(replica);
  ProgramBinding bound{.stream = shards_.stream(shard), .kernels = shards_.kernels(replica)};
  bound.workspace = workspaces_[static_cast<std::size_t>(shards_.lane_of(shard))].data();
  bound.parameters = model_.variables.parameters(replica).as<float>();
  bound.state = model_.variables.state(replica).as<float>();
  if (program_.options().precision == Precision::kBF16) {
    bound.rounded_parameters = model_.variables.rounded_parameters(replica).as<BFloat16>();
    bound.rounded_state = model_.variables.rounded_state(replica).as<BFloat16>();
  }
  if (averaged_weights_) {
    const OptimizerMemory& memory = model_.optimizer[index];
    bound.parameters = reinterpret_cast<float*>(memory.average.data());
    bound.rounded_parameters = reinterpret_cast<BFloat16*>(memory.rounded_average.data());
  }
  if (program_.options().mode == Mode::kTrain) {
    bound.gradients = reinterpret_cast<float*>(model_.optimizer[index].gradients.data());
  }
  if (shard_arenas_ != nullptr && shards_.is_virtual()) {
    const ShardArenas& arenas = (*shard_arenas_)[index];
    bound.frozen = bound.state;
    bound.gradients = arenas.gradients(shard - shards_.first_of(replica));
    bound.state = arenas.state(shard - shards_.first_of(replica));
  }
  if (!groups_.empty()) bound.group = &groups_[index];
  bound.scalars = reinterpret_cast<const StepScalars*>(block(shard) + BlockLayout::kScalars);
  return bound;
}

void MirroredProgram::backward(int shard, const Program::Needed& needed, const ReplicaStreams& streams,
                               const std::function<void(std::int64_t)>& filled, const ProgramWatch& watch) const {
  ProgramBinding bound = binding(shard);
  if (streams.weights_apart()) bound.beside = &streams.weights;
  program_.backward(bound, needed, filled, watch);
}

void MirroredProgram::submit_objective(int shard, std::vector<TensorView> results,
                                       std::vector<TensorView> gradients) const {
  const ProgramBinding bound = binding(shard);
  const ShardMemory& memory = memory_[static_cast<std::size_t>(shard)];
  objective_->submit({.stream = bound.stream,
                      .kernels = bound.kernels,
                      .scalars = bound.scalars,
                      .results = std::move(results),
                      .gradients = std::move(gradients),
                      .totals = totals(shard),
                      .labels = block(shard) + layout_.labels,
                      .tables = tables(shard),
                      .device_scratch = memory.scratch.data(),
                      .pinned_scratch = memory.pinned_scratch.data()});
}

const float* MirroredProgram::group_scale(int shard) const {
  return reinterpret_cast<const float*>(block(shard) + BlockLayout::kGroupScale);
}

TensorView MirroredProgram::labels(int shard, const std::string& field) const {
  std::string names;
  for (const Objective::Labels& labels : objective_->labels()) {
    if (labels.field.name == field) {
      return {block(shard) + layout_.labels + labels.offset, labels.batch.shape, labels.batch.dtype};
    }
    names += (names.empty() ? "" : ", ") + labels.field.name;
  }
  throw ConfigError("loss and metrics do not use a field '" + field + "'", "they use " + names);
}

void MirroredProgram::submit_failures(int replica, Stream& stream) const {
  const Collective& collective = model_.strategy->collective();
  if (collective.world_replicas() == 1) return;
  std::byte* scalars = block(shards_.first_of(replica));
  const auto note = [&](std::size_t at, const std::uint32_t* word) {
    if (word != nullptr) stream.copy(scalars + at, word, sizeof *word);
  };
  note(BlockLayout::kCollectiveFailed, collective.failure_word(replica));
  note(BlockLayout::kWorkFailed, stream.failure_word());
}

void MirroredProgram::clear_block(int shard) const { shards_.stream(shard).fill(block(shard), 0, layout_.bytes); }

}  // namespace headrace
