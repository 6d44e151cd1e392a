#include "headrace/train/step/shard_arenas.h"

#include "headrace/train/model/submission.h"
#include "headrace/train/strategy.h"

namespace headrace {

ShardArenas::ShardArenas(const ModelState& model, const Shards& shards, int replica, bool accumulates) {
  if (!shards.is_virtual()) return;
  Stream& stream = model.strategy->stream(replica);
  const TensorView trained = model.variables.parameters(replica);
  if (const std::int64_t averaged = model.layout.averaged_elements(); averaged > 0) {
    model_state_ = {model.variables.state(replica).data, Shape{averaged}, DType::kF32};
  }
  const auto make = [&](const TensorView& like) -> TensorView {
    if (!like.defined()) return {};
    memory_.push_back(model.strategy->device(replica).allocate(like.bytes()));
    stream.fill(memory_.back().data(), 0, like.bytes());
    return memory_.back().view(like.shape, DType::kF32);
  };
  submit_and_wait(*model.strategy, [&] {
    for (int s = 0; s < shards.per_replica(); ++s) {
      arenas_.push_back({.gradients = make(trained),
                         .accumulated = accumulates ? make(trained) : TensorView{},
                         .state = make(model_state_)});
      all_gradients_.push_back(arenas_.back().gradients);
      all_states_.push_back(arenas_.back().state);
    }
  });
}

float* ShardArenas::state(int shard) const {
  return of(shard).state.defined() ? of(shard).state.as<float>() : nullptr;
}

void ShardArenas::begin_step(Stream& stream, int shard) const {
  if (model_state_.defined()) stream.copy(of(shard).state.data, model_state_.data, model_state_.bytes());
}

void ShardArenas::accumulate(Stream& stream, Kernels& kernels, int shard) const {
  kernels.accumulate(stream, of(shard).gradients, of(shard).accumulated);
}

void ShardArenas::end_group(Stream& stream, Kernels& kernels, int shard, const float* group_scale) const {
  const Arenas& arenas = of(shard);
  kernels.scale(stream, arenas.accumulated, group_scale, arenas.gradients);
  stream.fill(arenas.accumulated.data, 0, arenas.accumulated.bytes());
}

void ShardArenas::clear_gradients(Stream& stream, std::int64_t begin, std::int64_t end) const {
  for (const Arenas& arenas : arenas_) {
    stream.fill(arenas.gradients.as<float>() + begin, 0, static_cast<std::size_t>(end - begin) * sizeof(float));
  }
}

void ShardArenas::sum_gradients(Stream& stream, Kernels& kernels, const TensorView& into) const {
  kernels.sum_tree(stream, all_gradients_, into);
}

void ShardArenas::sum_state(Stream& stream, Kernels& kernels, const TensorView& into) const {
  if (model_state_.defined()) kernels.sum_tree(stream, all_states_, into);
}

}  // namespace headrace
