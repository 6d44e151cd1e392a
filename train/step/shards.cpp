#include "headrace/train/step/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "headrace/devices/base/error.h"
#include "headrace/train/model/submission.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

bool is_power_of_two(int value) { return value > 0 && std::has_single_bit(static_cast<unsigned>(value)); }

void check_virtual_shards(int shards, int world_replicas) {
  const auto max = static_cast<int>(kernel::kMaxSummed);
  if (!is_power_of_two(shards) || shards > max) {
    throw ConfigError(
        fmt::format("{} virtual shards: a global batch is divided into a power of two of them, up to {}", shards,
                    max),
        "8 is a good choice: 1, 2, 4 and 8 replicas then give one result");
  }
  if (shards % world_replicas != 0) {
    throw ConfigError(
        fmt::format("{} virtual shards cannot be shared equally by {} replicas", shards, world_replicas),
        "take a power of two of replicas, and at least as many virtual shards");
  }
}

}  // namespace

Shards::Shards(Strategy& strategy, int virtual_shards) : Shards(strategy, strategy.world(), virtual_shards) {}

Shards::Shards(Strategy& strategy, const World& world, int virtual_shards)
    : strategy_(&strategy),
      virtual_(virtual_shards != 0),
      per_replica_(virtual_ ? virtual_shards / world.total : 1),
      local_(strategy.local_replicas() * per_replica_),
      world_(world.repeated(per_replica_)) {
  if (virtual_) check_virtual_shards(virtual_shards, world.total);
  for (int r = 0; r < strategy.local_replicas(); ++r) {
    first_lane_.push_back(lanes_);
    lanes_ += virtual_ ? std::min(per_replica_, strategy.lanes(r)) : 1;
  }
  first_lane_.push_back(lanes_);
}

int Shards::lane_of(int shard) const noexcept {
  const auto replica = static_cast<std::size_t>(replica_of(shard));
  const int lanes = first_lane_[replica + 1] - first_lane_[replica];
  return first_lane_[replica] + shard % per_replica_ % lanes;
}

Stream& Shards::stream(int shard) const {
  const int replica = replica_of(shard);
  if (!virtual_) return strategy_->stream(replica);
  return strategy_->lane(replica, lane_of(shard) - first_lane_[static_cast<std::size_t>(replica)]);
}

Kernels& Shards::kernels(int replica) const {
  Device& device = strategy_->device(replica);
  return virtual_ ? *device.lane_kernels() : *device.kernels();
}

void Shards::follow_replica(int shard) const {
  if (virtual_) stream(shard).follow(strategy_->stream(replica_of(shard)));
}

void Shards::join(int replica) const {
  if (!virtual_) return;
  const auto index = static_cast<std::size_t>(replica);
  for (int lane = 0; lane < first_lane_[index + 1] - first_lane_[index]; ++lane) {
    strategy_->stream(replica).follow(strategy_->lane(replica, lane));
  }
}

DeviceGroup shard_devices(Strategy& strategy, int virtual_shards) {
  return strategy.devices().repeated(Shards(strategy, virtual_shards).per_replica());
}

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
  kernels.accumulate(stream, {of(shard).gradients, of(shard).accumulated});
}

void ShardArenas::end_group(Stream& stream, Kernels& kernels, int shard, const float* group_scale) const {
  const Arenas& arenas = of(shard);
  kernels.scale(stream, {arenas.accumulated, arenas.gradients, group_scale});
  stream.fill(arenas.accumulated.data, 0, arenas.accumulated.bytes());
}

void ShardArenas::clear_gradients(Stream& stream, std::int64_t begin, std::int64_t end) const {
  for (const Arenas& arenas : arenas_) {
    stream.fill(arenas.gradients.as<float>() + begin, 0, static_cast<std::size_t>(end - begin) * sizeof(float));
  }
}

void ShardArenas::sum_gradients(Stream& stream, Kernels& kernels, const TensorView& into) const {
  kernels.sum_tree(stream, {all_gradients_, into});
}

void ShardArenas::sum_state(Stream& stream, Kernels& kernels, const TensorView& into) const {
  if (model_state_.defined()) kernels.sum_tree(stream, {all_states_, into});
}

}  // namespace headrace
