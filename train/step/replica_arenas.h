// One replica's arenas during training, and operations on whole arenas between backward pass and optimizer.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/collective.h"
#include "headrace/devices/kernels.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/step/shards.h"
#include "headrace/train/trainer.h"

namespace headrace {

// The memory that an optimizer reads and writes.
struct OptimizerViews {
  TensorView parameters, gradients;
  std::vector<TensorView> moments;
  TensorView rounded;  // the parameters in bf16; undefined if no copy is kept
};

// Functions submit to one of the replica's streams, and may be captured.
class ReplicaArenas {
 public:
  ReplicaArenas(ModelState& model, int replica, const UpdateScratch& scratch, std::int64_t scratch_elements,
                bool accumulates);

  // Returns elements [begin, end) of each arena.
  OptimizerViews slice(std::int64_t begin, std::int64_t end) const;
  // Adds this batch's gradients to those of the step so far.
  void accumulate(Stream& stream, Kernels& kernels) const;
  // Makes the step's gradients the accumulated ones times `group_scale`; accumulation starts over.
  void begin_group_update(Stream& stream, Kernels& kernels, const float* group_scale) const;
  // Applies the optimizer's clip to the step's gradients; `counted` make up their norm.
  void clip_gradients(Stream& stream, Kernels& kernels, std::span<const ArenaSlice> counted) const;
  // Returns the norm that the last clipping in this stream found; waits. REQUIRES: the norm is limited.
  double read_norm(Stream& stream) const;
  // Submits what follows the update: lookahead, and the average of the weights.
  void follow_update(Stream& stream, Kernels& kernels, const StepScalars* scalars) const;
  // Makes the state (running statistics, nothing frozen) its mean over the world's replicas or virtual shards;
  // `shards` are the replica's.
  void average_state(Collective& collective, int replica, Stream& stream, Kernels& kernels,
                     const ShardArenas& shards) const;

  // Copies what a step changes to the stream's memory; restore() copies it back.
  std::vector<Buffer> save(Stream& stream) const;
  void restore(Stream& stream, const std::vector<Buffer>& saved) const;

  // Gives a call the arrays that its rule needs; the next call in the stream reuses their memory.
  void lend_scratch(const UpdateScratch& wanted, UpdateCall& call) const;

  TensorView parameters, gradients;  // whole arenas, owned by the model
  std::vector<TensorView> moments;   // as many as the optimizer's rules need
  TensorView rounded;

 private:
  std::vector<TensorView> changing() const;

  TensorView state_, averaged_;  // all of it, and the part that becomes its mean
  TensorView slow_, average_;    // undefined if the optimizer has none
  GradientClip clip_;
  Buffer norm_;  // a GradientNorm, if the norm is limited
  Buffer accumulated_;
  std::int64_t scratch_elements_ = 0;  // of each array
  Buffer scratch_, pinned_scratch_;    // pinned: StepScalars before the arrays
  Buffer summed_state_;
};

// Computes the norms of a step's gradients on the first replica; once summed, all replicas' are equal.
class GradientMeasure {
 public:
  explicit GradientMeasure(ModelState& model);

  // Submits to the first replica's stream; may be captured.
  void submit(Stream& stream, Kernels& kernels, const TensorView& gradients) const;
  // Returns the norms of the last step that was submitted; waits for it.
  GradientNorms read() const;

 private:
  struct Part {
    std::string variable;
    std::int64_t begin = 0, elements = 0;
  };

  ModelState& model_;
  std::vector<Part> parts_;  // in layer order
  Buffer sums_;              // a GradientNorm for each part
};

}  // namespace headrace
