// The gradients and running statistics of each virtual shard of a replica in training.
#pragma once

#include <vector>

#include "headrace/devices/kernels.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/step/shards.h"

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
