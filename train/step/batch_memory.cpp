// What a BatchRunner keeps in memory: a block a shard on the devices, a slot a batch in flight on the host.
#include <cstring>
#include <new>
#include <utility>

#include "headrace/train/model/block_layout.h"
#include "headrace/train/step/batch_runner.h"
#include "headrace/train/strategy.h"

namespace headrace {

std::size_t BatchRunner::totals_bytes() const noexcept {
  return objective_ ? objective_->totals_bytes() : sizeof(MetricSums);
}

std::size_t BatchRunner::labels_at() const noexcept { return kTotalsAt + whole_lines(totals_bytes()); }

std::size_t BatchRunner::tables_at() const noexcept {
  return labels_at() + (objective_ ? objective_->labels_bytes() : 0);
}

void BatchRunner::allocate() {
  workspaces_.resize(static_cast<std::size_t>(shards_.lanes()));
  for (int shard = 0; shard < shards_.local_shards(); ++shard) {
    Memory memory{
        .block = stream(shard).allocate(tables_at() + tables_bytes()), .scratch = {}, .pinned_scratch = {}};
    const std::size_t scratch = objective_ ? objective_->device_scratch_bytes() : 0;
    const std::size_t pinned = objective_ ? objective_->pinned_scratch_bytes() : 0;
    if (scratch > 0) memory.scratch = stream(shard).allocate(scratch);
    if (pinned > 0) memory.pinned_scratch = stream(shard).device().allocate_pinned(pinned);
    memory_.push_back(std::move(memory));
    blank(shard);
    Buffer& workspace = workspaces_[static_cast<std::size_t>(shards_.lane_of(shard))];
    if (workspace) continue;
    workspace = stream(shard).allocate(program_.workspace_bytes());
    // Rows that no batch has filled yet are read as padding: they must be finite.
    stream(shard).fill(workspace.data(), 0, workspace.size());
  }
}

StepSlot BatchRunner::make_slot() const {
  StepSlot made;
  const std::size_t rows = static_cast<std::size_t>(options_.program.rows);
  const std::size_t tail = objective_ ? objective_->class_labels_bytes() : result_bytes();
  for (int shard = 0; shard < shards_.local_shards(); ++shard) {
    Device& device = stream(shard).device();
    ShardSlot slot{.replica = shards_.replica_of(shard),
                   .pinned = device.allocate_pinned(labels_at() + tail),
                   .begin = device.create_timed_event(),
                   .arrived = device.create_timed_event(),
                   .done = device.create_timed_event()};
    std::byte* base = slot.pinned.data();
    slot.scalars = new (base + kScalarsAt) StepScalars;
    slot.totals = base + kTotalsAt;
    std::memset(slot.totals, 0, totals_bytes());
    slot.group_scale = new (base + kGroupScaleAt) float;
    if (objective_) slot.labels = base + labels_at();
    if (!objective_) slot.result = reinterpret_cast<float*>(base + labels_at());
    slot.records.reserve(rows);
    made.shards.push_back(std::move(slot));
  }
  return made;
}

std::size_t BatchRunner::result_bytes() const {
  std::size_t bytes = 0;
  for (const TensorView& result : program_.results(binding(0))) bytes += result.bytes();
  return bytes;
}

ProgramBinding BatchRunner::binding(int shard) const {
  const int replica = shards_.replica_of(shard);
  const auto index = static_cast<std::size_t>(replica);
  ProgramBinding bound{.stream = stream(shard), .kernels = shards_.kernels(replica)};
  bound.workspace = workspaces_[static_cast<std::size_t>(shards_.lane_of(shard))].data();
  bound.parameters = model_.variables.parameters(replica).as<float>();
  bound.state = model_.variables.state(replica).as<float>();
  if (options_.program.precision == Precision::kBF16) {
    bound.rounded_parameters = model_.variables.rounded_parameters(replica).as<BFloat16>();
    bound.rounded_state = model_.variables.rounded_state(replica).as<BFloat16>();
  }
  if (options_.averaged_weights) {
    const OptimizerMemory& memory = model_.optimizer[index];
    bound.parameters = reinterpret_cast<float*>(memory.average.data());
    bound.rounded_parameters = reinterpret_cast<BFloat16*>(memory.rounded_average.data());
  }
  if (options_.program.mode == Mode::kTrain) {
    bound.gradients = reinterpret_cast<float*>(model_.optimizer[index].gradients.data());
  }
  if (options_.shard_arenas != nullptr && shards_.is_virtual()) {
    const ShardArenas& arenas = (*options_.shard_arenas)[index];
    bound.frozen = bound.state;
    bound.gradients = arenas.gradients(shard - shards_.first_of(replica));
    bound.state = arenas.state(shard - shards_.first_of(replica));
  }
  if (!groups_.empty()) bound.group = &groups_[index];
  bound.scalars = reinterpret_cast<const StepScalars*>(block(shard) + kScalarsAt);
  return bound;
}

std::byte* BatchRunner::block(int shard) const { return memory_[static_cast<std::size_t>(shard)].block.data(); }

std::byte* BatchRunner::totals(int shard) const { return block(shard) + kTotalsAt; }
std::byte* BatchRunner::tables(int shard) const { return block(shard) + tables_at(); }

const float* BatchRunner::group_scale(int shard) const {
  return reinterpret_cast<const float*>(block(shard) + kGroupScaleAt);
}

void BatchRunner::blank(int shard) {
  stream(shard).fill(block(shard), 0, memory_[static_cast<std::size_t>(shard)].block.size());
}

}  // namespace headrace
