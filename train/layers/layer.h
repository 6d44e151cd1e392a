// One kind of layer: what it needs, and what it submits. Layers are const; everything that changes is in the
// context, so one object serves all replicas.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/kernels.h"
#include "headrace/train/layer_options.h"

namespace headrace {

enum class Mode { kTrain, kEvaluate, kPredict };

enum class VariableRole {
  kTrained,
  kState,   // changed by the forward pass, averaged over replicas
  kFrozen,  // never changed by training
};

enum class Fill { kZeros, kConstant, kGlorotUniform, kHeUniform, kFanInUniform, kDirac, kUnitDeviation };

struct VariableSpec {
  std::string name;  // within the layer: "weights"
  Shape shape;
  VariableRole role = VariableRole::kTrained;
  Fill fill = Fill::kZeros;
  float constant = 1;  // of kConstant
  std::int64_t fan_in = 1, fan_out = 1;
  bool product_weights = false;  // read by products only: forward and backward may be given a bf16 copy
};

// Memory that a step keeps from forward to backward.
struct SavedSpec {
  Shape shape;
  DType dtype = DType::kF32;
};

struct LayerTraits {
  bool view = false;               // the output is the input under another shape: nothing to compute
  bool backward_in_place = false;  // the first input's gradient may overwrite the output's
  bool backward_reads_input = false;
  bool backward_reads_output = false;
  bool takes_epilogue = false;   // forward can apply an activation to its result
  bool undoes_epilogue = false;  // and backward starts from the gradient of what that left
  bool takes_pooling = false;    // can max-pool its input first, forward and backward
  bool casts = false;            // the result may be stored in another type than the input
  bool only_last = false;        // must be the model's result: a loss may take the logits before it instead
};

// Max pooling that a layer does before its own work, in place of the layer before it: from x to the layer's input.
struct PoolingPrologue {
  Kernels::MaxPool pool;
  TensorView x;
  TensorView x_gradient = {};  // backward only; undefined: not wanted
};

// One call's world. Views have the batch's rows as first extent.
struct LayerContext {
  Stream& stream;
  Kernels& kernels;
  Mode mode = Mode::kTrain;
  Precision precision = Precision::kF32;
  std::uint64_t seed = 0;
  int id = 0;  // the layer's number in its graph
  const StepScalars* scalars = nullptr;

  std::vector<TensorView> inputs = {};
  TensorView output = {};
  std::vector<TensorView> variables = {};  // in the order of variables()
  std::vector<TensorView> saved = {};      // in the order of saved()
  Activation epilogue = Activation::kNone;
  std::optional<PoolingPrologue> prologue = std::nullopt;

  // Backward only.
  TensorView output_gradient = {};
  std::vector<TensorView> input_gradients = {};     // undefined: not wanted
  std::vector<TensorView> variable_gradients = {};  // undefined for what is not trained
};

class Layer {
 public:
  Layer(std::string name, Shape shape) : name_(std::move(name)), shape_(shape) {}
  virtual ~Layer() = default;

  const std::string& name() const noexcept { return name_; }
  const Shape& shape() const noexcept { return shape_; }  // of one example's result

  virtual std::string kind() const = 0;
  virtual std::vector<VariableSpec> variables() const { return {}; }
  virtual std::vector<SavedSpec> saved(std::int64_t) const { return {}; }
  virtual LayerTraits traits(Mode) const { return {}; }
  // Whether any of variables() is trained.
  bool has_trained_variables() const;
  // The activation that this layer is, where the layer before it might do it instead.
  virtual std::optional<Activation> as_epilogue() const { return std::nullopt; }
  // The max pooling that this layer is, where the layer behind it might do it instead; argmax is the first of
  // saved().
  virtual std::optional<PoolOptions> as_pooling() const { return std::nullopt; }

  virtual void forward(LayerContext& context) const = 0;
  // From output_gradient to the input and variable gradients that are defined.
  virtual void backward(LayerContext& context) const = 0;

 private:
  std::string name_;
  Shape shape_;
};

// "layer 'conv_2' (conv)": how messages name a layer.
std::string label(const std::string& name, const std::string& kind);
Fill to_fill(Initializer initializer) noexcept;
// The view as (rows, last extent).
TensorView as_matrix(const TensorView& view);

}  // namespace headrace
