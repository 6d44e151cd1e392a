// A net as the list of calls that one step makes, with a place in one block of memory for every tensor. Planned
// once for a mode and a number of rows; the same for all replicas.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "headrace/devices/base/bf16.h"
#include "headrace/train/graph.h"
#include "headrace/train/layers.h"
#include "headrace/train/model/value_types.h"
#include "headrace/train/model/variable_layout.h"
#include "headrace/train/step/memory_plan.h"

namespace headrace {

struct ProgramOptions {
  Mode mode = Mode::kTrain;
  std::vector<bool> leaves_out_softmax = {};  // by output: the loss takes its logits; empty: none
  std::int64_t rows = 1;                      // of the batch, padding included
  int world_replicas = 1;
  Precision precision = Precision::kF32;
  DType activations = DType::kF32;  // how results of layers and their gradients are stored: f32 or bf16
  std::uint64_t seed = 0;           // of dropout
  // Allows backward() with ProgramBinding::beside: keeps what is read there for longer.
  bool variables_beside = false;
};

// One replica's memory and the stream to submit to.
struct ProgramBinding {
  Stream& stream;
  Kernels& kernels;
  std::byte* workspace = nullptr;  // workspace_bytes()
  float* parameters = nullptr;     // arenas of the layout
  float* state = nullptr;          // running statistics
  float* frozen = nullptr;         // another place in the state's arena, for frozen variables; null: the same
  BFloat16* rounded_parameters = nullptr;  // bf16 copies from which products read weights; null: none
  BFloat16* rounded_state = nullptr;
  float* gradients = nullptr;  // training only
  const StepScalars* scalars = nullptr;
  const ReplicaGroup* group = nullptr;  // training only, if the world has several replicas
  Stream* beside = nullptr;  // with ProgramOptions::variables_beside: for gradients of variables; null: none
};

// When a watch is called: before or after a layer's forward or backward pass.
enum class ProgramMoment { kBeforeForward, kAfterForward, kBeforeBackward, kAfterBackward };
using ProgramWatch = std::function<void(ProgramMoment, const LayerContext&)>;

// Immutable. A ReLU right after a convolution or dense layer whose result nothing else reads is applied by that
// layer; outside training so is every other activation, and in training one after a layer that can recompute what
// it was applied to (Layer::recomputes) and whose input needs no gradient. Batch normalisation applies the
// activation after it and goes back through it; in training it also does the max pooling right before it. A
// softmax at the end may be left out. Results are f32 whatever the activations are. Calls of one layer that share
// variables add their gradients.
class Program {
 public:
  // `kernels`: of the devices that run it. A layer recomputes only if it does so with all of them.
  Program(const Graph& graph, const VariableLayout& layout, const ProgramOptions& options,
          const std::vector<const Kernels*>& kernels = {});

  const ProgramOptions& options() const noexcept { return options_; }
  std::size_t workspace_bytes() const noexcept { return memory_.bytes(); }

  // Returns the place of a layer's result; for an input, where its field goes before forward().
  TensorView value(const ProgramBinding& binding, int id) const;
  // Returns the net's outputs, or the logits if a softmax is left out, by ProgramResults::layers.
  std::vector<TensorView> results(const ProgramBinding& binding) const;
  // Returns where the loss writes the results' gradients before backward().
  std::vector<TensorView> result_gradients(const ProgramBinding& binding) const;

  // By layer: whether the backward pass runs it. needed() returns this for a pass in which the trained variables
  // learn that are not frozen and for which `learns` is true.
  using Needed = std::vector<bool>;
  Needed needed(const std::function<bool(const Variable&)>& learns) const;

  // Submits the forward pass. A watch is called before and after each layer's submission, and may submit too.
  void forward(const ProgramBinding& binding, const ProgramWatch& watch = {}) const;
  // Submits the backward pass of the `needed` layers; a layer has all of its gradients or none. Calls `filled(n)`
  // each time the gradient arena's elements [0, n) have become final, in the order of the stream and the one
  // beside it together: the latter follows the stream, and callers who read gradients must follow both.
  void backward(const ProgramBinding& binding, const Needed& needed,
                const std::function<void(std::int64_t)>& filled, const ProgramWatch& watch = {}) const;

 private:
  // The storage that one input's gradient is written to, and the one it is then added to; -1: none.
  struct GradientTarget {
    int storage = -1;
    int add_to = -1;
  };

  void find_epilogues(const std::vector<const Kernels*>& kernels);
  // Returns whether backward() of the layer before an activation would undo it.
  bool undoes_epilogue(int id, const std::vector<const Kernels*>& kernels) const;
  void find_poolings();
  void plan_forward();
  void plan_backward();
  void plan_backward_of(int id);
  void plan_shared_variables(int id);
  bool is_result(int id) const;
  // Returns kEvaluate for a layer with frozen state in training.
  Mode mode_of(int id) const;
  [[noreturn]] void refuse_frozen_state(int id) const;
  bool runs(int id) const { return results_.runs[static_cast<std::size_t>(id)]; }
  // Adds the call's gradients of its variables to those of another call.
  void add_shared_gradients(const ProgramBinding& binding, int id, const LayerContext& context) const;
  GradientTarget target(int id, int input, bool in_place, int time);
  // Returns whether the layer's gradients of variables may be computed beside the rest of the backward pass.
  bool beside(int id) const;
  // Returns until when their operands must stay: the stream waits for them before the next such layer runs.
  int time_beside_ends(int id) const;

  int time_of_backward(int id) const noexcept { return 2 * graph_->size() - id; }
  bool fused(int id) const { return producer_of_[static_cast<std::size_t>(id)] >= 0; }
  // Returns the layer whose calls do all of this one's work, forward and backward; itself if none does.
  int doer(int id) const;
  int& value_storage(int id) { return values_[static_cast<std::size_t>(id)]; }
  int& gradient_storage(int id) { return gradients_[static_cast<std::size_t>(id)]; }
  // Returns a view of a layer's result, or of its gradient, without a place.
  TensorView stored(int id) const;
  TensorView place(const ProgramBinding& binding, int storage, const TensorView& what) const;
  TensorView gradient_view(const ProgramBinding& binding, int id, int storage) const;
  static TensorView variable_view(const ProgramBinding& binding, const Variable& variable);
  LayerContext context(const ProgramBinding& binding, int id) const;
  PoolingPrologue prologue(const ProgramBinding& binding, int pooling) const;
  // `again`: another call has already written gradients of the same variables.
  void add_gradients(const ProgramBinding& binding, int id, const Needed& needed, bool again,
                     LayerContext& context) const;
  TensorView variable_gradient(const ProgramBinding& binding, const Variable& variable) const;

  const Graph* graph_;
  const VariableLayout* layout_;
  ProgramOptions options_;
  ProgramResults results_;
  std::vector<DType> types_;  // of each layer's result and its gradient
  MemoryPlan memory_;
  std::vector<int> epilogue_of_;  // by layer: the activation it applies; -1
  std::vector<int> producer_of_;  // by activation: the layer that applies it; -1
  std::vector<bool> undone_;      // by activation: whether that layer also goes back through it
  std::vector<int> pooling_of_;   // by layer: the max pooling that it does first; -1
  std::vector<int> pooled_by_;    // by max pooling: the layer that does it; -1
  std::vector<int> values_;       // storage of each layer's result
  std::vector<int> gradients_;    // storage of its gradient; -1: not wanted
  std::vector<std::vector<int>> saved_;
  std::vector<std::vector<GradientTarget>> targets_;
  std::vector<std::vector<int>> shared_;  // by layer that shares its variables: storage for their gradients
  Needed wants_gradient_;
};

}  // namespace headrace
