// The shards of a global batch, each computed on its own, and the arenas of those that are virtual.
#pragma once

#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/device_group.h"
#include "headrace/devices/kernels.h"
#include "headrace/devices/stream.h"
#include "headrace/pipeline/loader.h"
#include "headrace/train/model/model_state.h"

namespace HEADRACE_API headrace {
class Strategy;
}

namespace headrace {

// One shard per replica, computed on the replica's stream; or a number of virtual shards that does not depend on
// the replicas. A replica then computes its shards on the lanes of its device, several at a time; a shard's
// results have the same bits on any device. A batch is divided into the world's shards; a process computes those
// of its replicas, and counts both from 0. REQUIRES: the strategy outlives it.
class Shards {
 public:
  // `virtual_shards` of the world, or 0: one per replica. Throws ConfigError for a number that is not a power of
  // two, or that the world's replicas cannot share equally.
  Shards(Strategy& strategy, int virtual_shards);
  // Treats the strategy's replicas as if they were in that world.
  Shards(Strategy& strategy, const World& world, int virtual_shards);

  bool is_virtual() const noexcept { return virtual_; }
  int local_shards() const noexcept { return local_; }
  // Returns the number of shards of all processes, and how many come before this one's: what the loader serves.
  const World& world() const noexcept { return world_; }
  int per_replica() const noexcept { return per_replica_; }
  int replica_of(int shard) const noexcept { return shard / per_replica_; }
  // The shards of a replica are [first_of(r), first_of(r + 1)).
  int first_of(int replica) const noexcept { return replica * per_replica_; }

  // Shards of one lane run one after another and may share memory.
  int lanes() const noexcept { return lanes_; }  // of all local replicas
  int lane_of(int shard) const noexcept;
  Stream& stream(int shard) const;
  // Returns the replica's kernels; for virtual shards, those whose results do not depend on its thread count.
  Kernels& kernels(int replica) const;

  // Makes the shard's stream wait for the work submitted to the replica's.
  void follow_replica(int shard) const;
  // Makes the replica's stream wait for the work submitted to its shards'.
  void join(int replica) const;

 private:
  Strategy* strategy_;
  bool virtual_;
  int per_replica_, local_;
  World world_;
  std::vector<int> first_lane_;  // of each local replica, then the number of lanes
  int lanes_ = 0;
};

// Returns the strategy's devices for a loader, each repeated once per shard. Throws what Shards throws.
DeviceGroup shard_devices(Strategy& strategy, int virtual_shards);

}  // namespace headrace

// The gradients and running statistics of each virtual shard of a replica in training.

namespace headrace {

// One replica's arenas; empty if shards are not virtual. Functions submit, and may be captured.
class ShardArenas {
 public:
  ShardArenas(const ModelState& model, const Shards& shards, int replica, bool accumulates);

  int size() const noexcept { return static_cast<int>(arenas_.size()); }

  // `shard` is the zero-based index among the replica's shards.
  float* gradients(int shard) const { return of(shard).gradients.as<float>(); }
  float* state(int shard) const;  // null if there are no statistics

  // Copies the model's statistics to the shard's, before the first batch of a step. This and the next two submit
  // to the shard's stream.
  void begin_step(Stream& stream, int shard) const;
  // Adds the batch's gradients to those of the step so far.
  void accumulate(Stream& stream, Kernels& kernels, int shard) const;
  // Makes the step's gradients the accumulated ones times `group_scale`; accumulation starts over.
  void end_group(Stream& stream, Kernels& kernels, int shard, const float* group_scale) const;

  // Zeroes elements [begin, end) of all gradients. This and the next two submit to the replica's stream.
  void clear_gradients(Stream& stream, std::int64_t begin, std::int64_t end) const;
  // Write the sum over the replica's shards.
  void sum_gradients(Stream& stream, Kernels& kernels, const TensorView& into) const;
  void sum_state(Stream& stream, Kernels& kernels, const TensorView& into) const;

 private:
  struct Arenas {
    TensorView gradients, accumulated, state;  // the last two may be undefined
  };

  const Arenas& of(int shard) const { return arenas_.at(static_cast<std::size_t>(shard)); }

  TensorView model_state_;  // the part that becomes the mean over shards; undefined if there is none
  std::vector<Buffer> memory_;
  std::vector<Arenas> arenas_;
  std::vector<TensorView> all_gradients_, all_states_;
};

}  // namespace headrace
