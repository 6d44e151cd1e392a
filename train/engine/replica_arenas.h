// One replica's arenas during training, and what is done to a whole arena between backward and optimizer.
#pragma once

#include <array>
#include <vector>

#include "headrace/devices/collective.h"
#include "headrace/devices/kernels.h"
#include "headrace/train/engine/model_state.h"

namespace headrace {

// What an optimizer reads and writes. A moment that its rule does not keep is undefined.
struct OptimizerViews {
  TensorView parameters, gradients;
  std::array<TensorView, 2> moments;
  TensorView rounded;  // the parameters in bf16; undefined where no copy is kept
};

// Functions submit to one of the replica's streams, and may be captured.
class ReplicaArenas {
 public:
  ReplicaArenas(ModelState& model, int replica, bool accumulates);

  // Elements [begin, end) of each arena.
  OptimizerViews slice(std::int64_t begin, std::int64_t end) const;
  // Adds this batch's gradients to those of the step so far.
  void accumulate(Stream& stream, Kernels& kernels) const;
  // The step's gradients are the accumulated ones times `group_scale`; accumulation starts over.
  void begin_group_update(Stream& stream, Kernels& kernels, const float* group_scale) const;
  // The state (running statistics, nothing frozen) becomes its mean over replicas.
  void average_state(Collective& collective, int replica, Stream& stream, Kernels& kernels) const;

  // What a step changes: copies of it in the stream's memory, and back from them.
  std::vector<Buffer> save(Stream& stream) const;
  void restore(Stream& stream, const std::vector<Buffer>& saved) const;

  TensorView parameters, gradients;  // whole arenas, owned by the model
  std::array<TensorView, 2> moments;
  TensorView rounded;

 private:
  std::vector<TensorView> changing() const;

  TensorView state_, averaged_;  // all of it, and what becomes its mean
  Buffer accumulated_;
  Buffer summed_state_;
};

}  // namespace headrace
