#include "headrace/train/engine/replica_arenas.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "headrace/train/engine/step_failure.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

TensorView part(const TensorView& arena, std::int64_t begin, std::int64_t end) {
  if (!arena.defined()) return {};
  const std::size_t offset = static_cast<std::size_t>(begin) * size_of(arena.dtype);
  return {arena.as<std::byte>() + offset, Shape{end - begin}, arena.dtype};
}

}  // namespace

ReplicaArenas::ReplicaArenas(ModelState& model, int replica, bool accumulates)
    : parameters(model.variables.parameters(replica)),
      rounded(model.variables.rounded_parameters(replica)),
      state_(model.variables.state(replica)),
      clip_(model.require_compiled("training").optimizer.clip) {
  if (const std::int64_t averaged = model.layout.averaged_elements(); averaged > 0) {
    averaged_ = part(state_, 0, averaged);
  }
  Device& device = model.strategy->device(replica);
  Stream& stream = model.strategy->stream(replica);
  const OptimizerMemory& memory = model.optimizer.at(static_cast<std::size_t>(replica));
  gradients = memory.gradients.view(parameters.shape, DType::kF32);
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (memory.moments[i]) moments[i] = memory.moments[i].view(parameters.shape, DType::kF32);
  }
  if (memory.slow) slow_ = memory.slow.view(parameters.shape, DType::kF32);
  if (memory.average) average_ = memory.average.view(parameters.shape, DType::kF32);
  if (clip_.max_norm != 0) norm_ = device.allocate(sizeof(GradientNorm));
  if (accumulates) accumulated_ = device.allocate(parameters.bytes());
  if (averaged_.defined()) summed_state_ = device.allocate(averaged_.bytes());
  submit_and_wait(*model.strategy, [&] {
    if (norm_) stream.fill(norm_.data(), 0, norm_.size());
    if (accumulated_) stream.fill(accumulated_.data(), 0, accumulated_.size());
  });
}

OptimizerViews ReplicaArenas::slice(std::int64_t begin, std::int64_t end) const {
  return {.parameters = part(parameters, begin, end),
          .gradients = part(gradients, begin, end),
          .moments = {part(moments[0], begin, end), part(moments[1], begin, end)},
          .rounded = part(rounded, begin, end)};
}

void ReplicaArenas::accumulate(Stream& stream, Kernels& kernels) const {
  kernels.accumulate(stream, gradients, accumulated_.view(gradients.shape, DType::kF32));
}

void ReplicaArenas::begin_group_update(Stream& stream, Kernels& kernels, const float* group_scale) const {
  kernels.scale(stream, accumulated_.view(gradients.shape, DType::kF32), group_scale, gradients);
  stream.fill(accumulated_.data(), 0, accumulated_.size());
}

void ReplicaArenas::clip_gradients(Stream& stream, Kernels& kernels, std::span<const ArenaSlice> counted) const {
  if (clip_.max_value != 0) kernels.clamp(stream, gradients, clip_.max_value);
  if (clip_.max_norm == 0) return;
  auto* norm = reinterpret_cast<GradientNorm*>(norm_.data());
  stream.fill(norm, 0, sizeof(GradientNorm));
  for (const auto& [begin, end] : counted) kernels.add_squares(stream, part(gradients, begin, end), norm);
  kernels.clip_factor(stream, clip_.max_norm, norm);
  kernels.scale(stream, gradients, &norm->factor, gradients);
}

double ReplicaArenas::read_norm(Stream& stream) const {
  GradientNorm norm;
  stream.copy(&norm, norm_.data(), sizeof norm);
  stream.synchronize();
  return std::sqrt(norm.squares);
}

void ReplicaArenas::follow_update(Stream& stream, Kernels& kernels, const StepScalars* scalars) const {
  if (slow_.defined()) kernels.look_ahead(stream, {parameters, rounded}, scalars, slow_);
  if (average_.defined()) kernels.average(stream, parameters, scalars, average_);
}

void ReplicaArenas::average_state(Collective& collective, int replica, Stream& stream, Kernels& kernels,
                                  const ShardArenas& shards) const {
  const int states = collective.size() * std::max(1, shards.size());
  if (!averaged_.defined() || (states == 1 && shards.size() == 0)) return;
  const TensorView summed = summed_state_.view(averaged_.shape, DType::kF32);
  if (shards.size() > 0) shards.sum_state(stream, kernels, summed);
  if (shards.size() == 0) stream.copy(summed.data, averaged_.data, averaged_.bytes());
  collective.all_reduce_sum(replica, summed, stream);
  kernels.scale(stream, summed, 1.0F / static_cast<float>(states), averaged_);
}

std::vector<TensorView> ReplicaArenas::changing() const {
  std::vector<TensorView> views;
  for (const TensorView& view :
       {parameters, rounded, gradients, moments[0], moments[1], slow_, average_, state_}) {
    if (view.defined() && view.bytes() > 0) views.push_back(view);
  }
  return views;
}

std::vector<Buffer> ReplicaArenas::save(Stream& stream) const {
  std::vector<Buffer> saved;
  for (const TensorView& view : changing()) {
    saved.push_back(stream.allocate(view.bytes()));
    stream.copy(saved.back().data(), view.data, view.bytes());
  }
  return saved;
}

void ReplicaArenas::restore(Stream& stream, const std::vector<Buffer>& saved) const {
  const std::vector<TensorView> views = changing();
  for (std::size_t i = 0; i < views.size(); ++i) stream.copy(views[i].data, saved[i].data(), views[i].bytes());
}

}  // namespace headrace
