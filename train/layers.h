// Layers: the options of those there are, and what a layer is. A custom layer is a class derived from Layer, added
// by Graph::call(). Layers are const; everything that changes is in the context, so one object serves all
// replicas.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/shape.h"
#include "headrace/devices/kernels.h"

namespace HEADRACE_API headrace {

// Named values in order, from which a part of a model, a layer or an update rule, can be made again.
class Attributes {
 public:
  using Value = std::variant<bool, std::int64_t, float, std::string, std::vector<std::int64_t>>;
  using Entry = std::pair<std::string, Value>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) : entries_(entries) {}

  void add(const std::string& name, Value value) { entries_.emplace_back(name, std::move(value)); }
  const std::vector<Entry>& entries() const noexcept { return entries_; }

  // The one of this name; ConfigError where there is none, or one of another type or range. A whole number is a
  // float, too.
  bool flag(const std::string& name) const;
  int whole(const std::string& name) const;
  float number(const std::string& name) const;
  std::string text(const std::string& name) const;
  Shape shape(const std::string& name) const;

  bool operator==(const Attributes&) const = default;

 private:
  const Value& find(const std::string& name) const;

  std::vector<Entry> entries_;
};

// The options of layers.

enum class ConvPadding {
  kSame,   // output extent = ceil(input / stride); an odd pixel of padding goes below and to the right
  kEven,   // the same extents, with (kernel - 1) / 2 pixels on every side whatever the stride, as PyTorch's nets
           // pad; for odd kernels
  kValid,  // no padding
};

// Of weights; biases start at 0.
enum class Initializer {
  kGlorotUniform,  // uniform in +-sqrt(6 / (fan_in + fan_out)), Keras's default
  kHeUniform,      // uniform in +-sqrt(6 / fan_in), for deep ReLU nets
  kFanInUniform,   // uniform in +-1 / sqrt(fan_in), PyTorch's default
  kDirac,          // kFanInUniform, but the first filters of a convolution each pass one channel on as it is
  kUnitDeviation,  // uniform, divided by the standard deviation of the values drawn
};

// An empty name becomes "<kind>", "<kind>_1", ... in every options struct below.
struct ConvLayerOptions {
  int kernel = 3;
  int stride = 1;
  ConvPadding padding = ConvPadding::kSame;
  Activation activation = Activation::kNone;  // adds an activation layer, fused where that is possible
  bool bias = true;
  bool trained_weights = true;  // false: they stay as they are, no gradient is computed
  Initializer initializer = Initializer::kGlorotUniform;
  std::string name = {};
};

struct DenseLayerOptions {
  Activation activation = Activation::kNone;
  bool bias = true;
  Initializer initializer = Initializer::kGlorotUniform;
  std::string name = {};
};

// Statistics are those of each replica's own rows, and the running ones are averaged over replicas every step;
// synchronised they are those of all replicas' rows, at the price of a sum over replicas each way.
struct BatchNormLayerOptions {
  float momentum = 0.99F;  // running = momentum * running + (1 - momentum) * batch
  float epsilon = 1e-3F;
  bool scale = true;  // false: gamma fixed at 1
  bool synchronised = false;
  std::string name = {};
};

struct PoolLayerOptions {
  int stride = 0;  // 0: the window
  std::string name = {};
};

struct LayerOptions {
  std::string name = {};
};

enum class Mode { kTrain, kEvaluate, kPredict };

enum class VariableRole {
  kTrained,
  kState,   // changed by the forward pass, averaged over the world's replicas
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

// What the size of a step's tensors depends on beside their layer.
struct StepShape {
  std::int64_t rows = 1;  // of the batch, padding included
  int world_replicas = 1;
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
  bool softmax = false;          // of its only input: a loss on its result may take that, the logits, instead
  bool f32 = false;              // takes and gives f32 whatever activations are stored as
  bool over_replicas = false;    // needs the batches of all the world's replicas at once: LayerContext::group
  // Backward makes the gradients of variables from the variables, the input and the output's gradient alone, which
  // it leaves as they are, and submits all of that to LayerContext::variables_stream(). Not together with
  // backward_in_place.
  bool variables_beside = false;
};

// Max pooling that a layer does before its own work, in place of the layer before it: from x to the layer's input.
struct PoolingPrologue {
  Kernels::MaxPool pool;
  TensorView x;
  TensorView x_gradient = {};  // backward only; undefined: not wanted
};

// The replicas that train together, in all processes.
struct ReplicaGroup {
  int world_replicas = 1;
  int replica = 0;  // this one, of the world
  // In stream order the tensor, f32, becomes the sum of all replicas' tensors: each makes the same calls in the
  // same order.
  std::function<void(const TensorView&)> sum;
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
  const ReplicaGroup* group = nullptr;  // null outside training, or where the world has one replica

  std::vector<TensorView> inputs = {};
  TensorView output = {};
  std::vector<TensorView> variables = {};  // in the order of variables()
  std::vector<TensorView> saved = {};      // in the order of saved()
  Activation epilogue = Activation::kNone;
  std::optional<PoolingPrologue> prologue = std::nullopt;

  // Backward only.
  bool undoes_epilogue = false;  // output_gradient is that of the epilogue's result
  TensorView output_gradient = {};
  std::vector<TensorView> input_gradients = {};     // undefined: not wanted
  std::vector<TensorView> variable_gradients = {};  // undefined for what is not trained
  Stream* beside = nullptr;                         // see variables_stream()

  // Backward of a layer with LayerTraits::variables_beside: where the gradients of its variables are submitted. It
  // has waited for what `stream` was given before the call, and `stream` does not wait for it.
  Stream& variables_stream() const noexcept { return beside != nullptr ? *beside : stream; }
};

// By which, with the shapes of its inputs, a layer can be made again.
using LayerAttributes = Attributes;

class Layer {
 public:
  Layer(std::string name, Shape shape) : name_(std::move(name)), shape_(shape) {}
  virtual ~Layer() = default;

  const std::string& name() const noexcept { return name_; }
  const Shape& shape() const noexcept { return shape_; }  // of one example's result

  virtual std::string kind() const = 0;
  virtual LayerAttributes attributes() const { return {}; }
  virtual std::vector<VariableSpec> variables() const { return {}; }
  virtual std::vector<SavedSpec> saved(const StepShape&) const { return {}; }
  virtual LayerTraits traits(Mode) const { return {}; }
  // Whether any of variables() is trained.
  bool has_trained_variables() const;
  // True where backward() can undo an epilogue on devices with these kernels, computing again what it was applied
  // to, and gains by it. Not asked where the gradient of an input is wanted. `activations`: the type they are
  // stored in.
  virtual bool recomputes(const Kernels&, DType activations, Precision) const {
    (void)activations;
    return false;
  }
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

// What a layer is made again from.
struct LayerRecord {
  std::string name;
  std::vector<Shape> inputs;
  LayerAttributes attributes;
};

// Makes a layer of one kind. ConfigError where the record does not fit.
using LayerMaker = std::function<std::shared_ptr<const Layer>(const LayerRecord&)>;
using LayerMakers = std::map<std::string, LayerMaker>;  // by kind

// "layer 'conv_2' (conv)": how messages name a layer.
std::string label(const std::string& name, const std::string& kind);
// The view as (rows, last extent).
TensorView as_matrix(const TensorView& view);

}  // namespace headrace
