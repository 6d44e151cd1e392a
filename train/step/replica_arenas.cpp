#include "headrace/train/step/replica_arenas.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "headrace/train/model/submission.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

// Offset of the arrays in the pinned scratch.
constexpr std::size_t kScratchAt = (sizeof(StepScalars) + 63) / 64 * 64;

TensorView part(const TensorView& arena, std::int64_t begin, std::int64_t end) {
  if (!arena.defined()) return {};
  const std::size_t offset = static_cast<std::size_t>(begin) * size_of(arena.dtype);
  return {arena.as<std::byte>() + offset, Shape{end - begin}, arena.dtype};
}

}  // namespace

ReplicaArenas::ReplicaArenas(ModelState& model, int replica, const UpdateScratch& scratch,
                             std::int64_t scratch_elements, bool accumulates)
    : parameters(model.variables.parameters(replica)),
      rounded(model.variables.rounded_parameters(replica)),
      state_(model.variables.state(replica)),
      clip_(model.require_compiled("training").optimizer.clip),
      scratch_elements_(scratch_elements) {
  if (const std::int64_t averaged = model.layout.averaged_elements(); averaged > 0) {
    averaged_ = part(state_, 0, averaged);
  }
  Device& device = model.strategy->device(replica);
  Stream& stream = model.strategy->stream(replica);
  const OptimizerMemory& memory = model.optimizer.at(static_cast<std::size_t>(replica));
  gradients = memory.gradients.view(parameters.shape, DType::kF32);
  for (const Buffer& moment : memory.moments) moments.push_back(moment.view(parameters.shape, DType::kF32));
  if (memory.slow) slow_ = memory.slow.view(parameters.shape, DType::kF32);
  if (memory.average) average_ = memory.average.view(parameters.shape, DType::kF32);
  if (clip_.max_norm != 0) norm_ = device.allocate(sizeof(GradientNorm));
  const auto bytes_of = [&](int arrays) {
    return static_cast<std::size_t>(arrays * scratch_elements) * sizeof(float);
  };
  if (scratch.device > 0) scratch_ = device.allocate(bytes_of(scratch.device));
  if (scratch.pinned > 0) pinned_scratch_ = device.allocate_pinned(kScratchAt + bytes_of(scratch.pinned));
  if (accumulates) accumulated_ = device.allocate(parameters.bytes());
  if (averaged_.defined()) summed_state_ = device.allocate(averaged_.bytes());
  submit_and_wait(*model.strategy, [&] {
    if (norm_) stream.fill(norm_.data(), 0, norm_.size());
    if (accumulated_) stream.fill(accumulated_.data(), 0, accumulated_.size());
  });
}

OptimizerViews ReplicaArenas::slice(std::int64_t begin, std::int64_t end) const {
  OptimizerViews views{.parameters = part(parameters, begin, end),
                       .gradients = part(gradients, begin, end),
                       .moments = {},
                       .rounded = part(rounded, begin, end)};
  for (const TensorView& moment : moments) views.moments.push_back(part(moment, begin, end));
  return views;
}

void ReplicaArenas::lend_scratch(const UpdateScratch& wanted, UpdateCall& call) const {
  const auto array = [&](const Buffer& from, std::size_t begin, int index) {
    const std::size_t at = begin + static_cast<std::size_t>(index * scratch_elements_) * sizeof(float);
    return from.view(call.parameters.shape, DType::kF32, at);
  };
  for (int i = 0; i < wanted.device; ++i) call.device_scratch.push_back(array(scratch_, 0, i));
  for (int i = 0; i < wanted.pinned; ++i) {
    call.pinned_scratch.push_back(array(pinned_scratch_, kScratchAt, i));
  }
  if (pinned_scratch_) call.pinned_scalars = reinterpret_cast<StepScalars*>(pinned_scratch_.data());
}

void ReplicaArenas::accumulate(Stream& stream, Kernels& kernels) const {
  kernels.accumulate(stream, {gradients, accumulated_.view(gradients.shape, DType::kF32)});
}

void ReplicaArenas::begin_group_update(Stream& stream, Kernels& kernels, const float* group_scale) const {
  kernels.scale(stream, {accumulated_.view(gradients.shape, DType::kF32), gradients, group_scale});
  stream.fill(accumulated_.data(), 0, accumulated_.size());
}

void ReplicaArenas::clip_gradients(Stream& stream, Kernels& kernels, std::span<const ArenaSlice> counted) const {
  if (clip_.max_value != 0) kernels.clamp(stream, {gradients, clip_.max_value});
  if (clip_.max_norm == 0) return;
  auto* norm = reinterpret_cast<GradientNorm*>(norm_.data());
  stream.fill(norm, 0, sizeof(GradientNorm));
  for (const auto& [begin, end] : counted) kernels.add_squares(stream, {part(gradients, begin, end), norm});
  kernels.clip_factor(stream, {clip_.max_norm, norm});
  kernels.scale(stream, {gradients, gradients, &norm->factor});
}

double ReplicaArenas::read_norm(Stream& stream) const {
  GradientNorm norm;
  stream.copy(&norm, norm_.data(), sizeof norm);
  stream.synchronize();
  return std::sqrt(norm.squares);
}

void ReplicaArenas::follow_update(Stream& stream, Kernels& kernels, const StepScalars* scalars) const {
  if (slow_.defined()) kernels.look_ahead(stream, {{parameters, rounded}, scalars, slow_});
  if (average_.defined()) kernels.average(stream, {parameters, average_, scalars});
}

void ReplicaArenas::average_state(Collective& collective, int replica, Stream& stream, Kernels& kernels,
                                  const ShardArenas& shards) const {
  const int states = collective.world_replicas() * std::max(1, shards.size());
  if (!averaged_.defined() || (states == 1 && shards.size() == 0)) return;
  const TensorView summed = summed_state_.view(averaged_.shape, DType::kF32);
  if (shards.size() > 0) shards.sum_state(stream, kernels, summed);
  if (shards.size() == 0) stream.copy(summed.data, averaged_.data, averaged_.bytes());
  collective.all_reduce_sum(replica, summed, stream);
  kernels.scale(stream, {summed, averaged_, 1.0F / static_cast<float>(states)});
}

std::vector<TensorView> ReplicaArenas::changing() const {
  std::vector<TensorView> views;
  const auto add = [&](const TensorView& view) {
    if (view.defined() && view.bytes() > 0) views.push_back(view);
  };
  for (const TensorView& view : {parameters, rounded, gradients, slow_, average_, state_}) add(view);
  for (const TensorView& moment : moments) add(moment);
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

GradientMeasure::GradientMeasure(ModelState& model) : model_(model) {
  for (const Variable& variable : model.layout.variables()) {
    if (!variable.learns()) continue;
    parts_.push_back(
        {.variable = variable.name, .begin = variable.offset, .elements = variable.spec.shape.elements()});
  }
  sums_ = model.strategy->device(0).allocate(parts_.size() * sizeof(GradientNorm));
  submit_and_wait(*model.strategy, [&] { model.strategy->stream(0).fill(sums_.data(), 0, sums_.size()); });
}

void GradientMeasure::submit(Stream& stream, Kernels& kernels, const TensorView& gradients) const {
  stream.fill(sums_.data(), 0, sums_.size());
  auto* sum = reinterpret_cast<GradientNorm*>(sums_.data());
  for (const Part& part : parts_) {
    const TensorView mine{gradients.as<float>() + part.begin, Shape{part.elements}, DType::kF32};
    kernels.add_squares(stream, {mine, sum++});
  }
}

GradientNorms GradientMeasure::read() const {
  std::vector<GradientNorm> sums(parts_.size());
  Stream& stream = model_.strategy->stream(0);
  stream.copy(sums.data(), sums_.data(), sums_.size());
  stream.synchronize();
  GradientNorms norms;
  double squares = 0;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    squares += sums[i].squares;
    norms.by_variable.emplace_back(parts_[i].variable, std::sqrt(sums[i].squares));
  }
  norms.all = std::sqrt(squares);
  return norms;
}

}  // namespace headrace
