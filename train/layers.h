// Layers: the options of the built-in ones, and the base class Layer. A custom layer derives from Layer and is
// added by Graph::call(). Layers are const; all that changes is in the context, so that one object serves all
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

// Named values in order, from which a part of a model, e.g. a layer or an update rule, can be recreated.
class Attributes {
 public:
  using Value = std::variant<bool, std::int64_t, float, std::string, std::vector<std::int64_t>>;
  using Entry = std::pair<std::string, Value>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) : entries_(entries) {}

  void add(const std::string& name, Value value) { entries_.emplace_back(name, std::move(value)); }
  const std::vector<Entry>& entries() const noexcept { return entries_; }

  // Returns the value of this name. Throws ConfigError if there is none or if it has another type or is out of
  // range. number() also accepts a whole number, height_width() one for both.
  bool flag(const std::string& name) const;
  int whole(const std::string& name) const;
  float number(const std::string& name) const;
  std::string text(const std::string& name) const;
  Shape shape(const std::string& name) const;
  HeightWidth height_width(const std::string& name) const;
  bool has(const std::string& name) const noexcept;

  bool operator==(const Attributes&) const = default;

 private:
  const Value& find(const std::string& name) const;

  std::vector<Entry> entries_;
};

// --- options of layers ---

// Padding with zeros, chosen for height and width separately.
enum class ConvPadding {
  kSame,    // output extent = ceil(input / stride); an odd pixel of padding goes below and to the right
  kEven,    // the same extents, with dilation * (kernel - 1) / 2 pixels on both sides for any stride, as in
            // PyTorch's nets; for odd kernels
  kValid,   // no padding
  kPixels,  // `pixels` on both sides, PyTorch's padding=pixels
};

// Initializes weights; biases start at 0.
enum class Initializer {
  kGlorotUniform,  // uniform in +-sqrt(6 / (fan_in + fan_out)), Keras's default
  kHeUniform,      // uniform in +-sqrt(6 / fan_in), for deep ReLU nets
  kFanInUniform,   // uniform in +-1 / sqrt(fan_in), PyTorch's default
  kDirac,          // kFanInUniform, but each of a convolution's first filters passes one channel through unchanged
  kUnitDeviation,  // uniform, divided by the standard deviation of the drawn values
};

// Returns the activation's word: "relu", "leaky_relu" ...; kNone is "linear". activation_named() is its inverse
// and throws ConfigError listing the words.
std::string to_text(Activation activation);
Activation activation_named(const std::string& word);

// In every options struct below an empty name becomes "<kind>", "<kind>_1", ...
struct ConvLayerOptions {
  HeightWidth kernel = 3;  // {1, 7} is one row of seven taps
  HeightWidth stride = 1;
  HeightWidth dilation = 1;  // pixels from one tap of the kernel to the next: it spans dilation * (kernel - 1) + 1
  ConvPadding padding = ConvPadding::kSame;
  HeightWidth pixels = 0;  // of padding, for ConvPadding::kPixels
  // Groups of channels, each convolved by itself into filters / groups channels of the result. Must divide the
  // input's channels and the filters.
  int groups = 1;
  Activation activation = Activation::kNone;  // adds that layer behind this one, fused if possible
  bool bias = true;
  bool trained_weights = true;                            // false: they keep their values, no gradient is computed
  Initializer initializer = Initializer::kGlorotUniform;  // kDirac for one group only
  std::string name = {};
};

struct ConvTransposeLayerOptions {
  HeightWidth kernel = 3;
  HeightWidth stride = 1;
  HeightWidth dilation = 1;
  ConvPadding padding = ConvPadding::kSame;
  HeightWidth pixels = 0;  // of padding, for ConvPadding::kPixels
  // Rows and columns of the result beyond (input - 1) * stride + span - padding, below stride; the span is
  // dilation * (kernel - 1) + 1, the padding that of both sides: for kSame twice span / 2, as in Keras. nullopt:
  // the extents that Graph::conv_transpose() names.
  std::optional<HeightWidth> output_padding = {};
  int groups = 1;                             // as of conv()
  Activation activation = Activation::kNone;  // adds that layer behind this one, fused if possible
  bool bias = true;
  bool trained_weights = true;
  Initializer initializer = Initializer::kGlorotUniform;  // not kDirac
  std::string name = {};
};

// Each channel has filters of its own: channel o of the result is a convolution of channel o / multiplier.
struct DepthwiseConvLayerOptions {
  HeightWidth kernel = 3;
  HeightWidth stride = 1;
  HeightWidth dilation = 1;
  ConvPadding padding = ConvPadding::kSame;
  HeightWidth pixels = 0;                     // of padding, for ConvPadding::kPixels
  int multiplier = 1;                         // filters of a channel
  Activation activation = Activation::kNone;  // adds that layer behind this one, fused if possible
  bool bias = true;
  bool trained_weights = true;
  Initializer initializer = Initializer::kGlorotUniform;  // not kDirac
  std::string name = {};
};

struct DenseLayerOptions {
  Activation activation = Activation::kNone;
  bool bias = true;
  Initializer initializer = Initializer::kGlorotUniform;
  std::string name = {};
};

// Statistics are those of each replica's own rows, and running ones are averaged over replicas every step; if
// synchronised, they are those of all replicas' rows, at the cost of a sum over replicas each way.
struct BatchNormLayerOptions {
  float momentum = 0.99F;  // running = momentum * running + (1 - momentum) * batch
  float epsilon = 1e-3F;
  bool scale = true;  // false: gamma fixed at 1
  bool synchronised = false;
  std::string name = {};
};

struct PoolLayerOptions {
  int stride = 0;  // 0: same as the window
  // Pixels beyond each side that windows may cover, at most half a window, as in PyTorch. Max pooling only: they
  // are never the maximum.
  int padding = 0;
  std::string name = {};
};

// Normalises each example's last axis, in f32.
struct LayerNormLayerOptions {
  float epsilon = 1e-3F;  // Keras's default; PyTorch's is 1e-5
  bool scale = true;      // learns gamma; false: fixed at 1
  bool center = true;     // learns beta; false: fixed at 0
  std::string name = {};
};

struct EmbeddingLayerOptions {
  std::string name = {};
};

struct AttentionLayerOptions {
  bool causal = false;  // position t of the queries looks at positions up to t only
  float dropout = 0;    // the share of probabilities that is dropped in training
  std::string name = {};
};

// An attention within dense layers, as Keras's MultiHeadAttention is. The dense layers are "NAME/query",
// "NAME/value" and "NAME/key" before it, and "NAME" after it.
struct MultiHeadAttentionLayerOptions {
  int value_dim = 0;   // the width of each head's values; 0: that of its keys
  int output_dim = 0;  // features of the result; 0: those of the queries
  bool causal = false;
  float dropout = 0;
  bool bias = true;
  Initializer initializer = Initializer::kGlorotUniform;
  std::string name = {};
};

struct LayerOptions {
  std::string name = {};
};

enum class Mode { kTrain, kEvaluate, kPredict };

enum class VariableRole {
  kTrained,
  kState,   // changed by the forward pass, averaged over all replicas in the world
  kFrozen,  // never changed by training
};

enum class Fill { kZeros, kConstant, kGlorotUniform, kHeUniform, kFanInUniform, kDirac, kUnitDeviation, kUniform };

struct VariableSpec {
  std::string name;  // within the layer: "weights"
  Shape shape;
  VariableRole role = VariableRole::kTrained;
  Fill fill = Fill::kZeros;
  float constant = 1;  // for kConstant; for kUniform the limit: uniform in +-constant
  std::int64_t fan_in = 1, fan_out = 1;
  bool product_weights = false;  // only used in products: forward and backward may receive a bf16 copy
};

// The properties of a step, besides the layer, that determine the sizes of tensors.
struct StepShape {
  std::int64_t rows = 1;  // of the batch, padding included
  int world_replicas = 1;
};

// Memory that a step keeps from the forward to the backward pass.
struct SavedSpec {
  Shape shape;
  DType dtype = DType::kF32;
};

struct LayerTraits {
  bool view = false;               // the output is the input in another shape: nothing to compute
  bool backward_in_place = false;  // the first input's gradient may overwrite the output's
  bool backward_reads_input = false;
  bool backward_reads_output = false;
  bool takes_epilogue = false;   // forward can apply an activation to its result
  bool undoes_epilogue = false;  // backward can start from the gradient of the activation's result
  bool takes_pooling = false;    // can max-pool its input first, in forward and backward
  bool casts = false;            // the result may be stored in another type than the input
  bool softmax = false;          // of its only input: a loss may take that input, the logits, instead
  bool f32 = false;              // takes and returns f32 whatever type activations are stored in
  bool over_replicas = false;    // needs the batches of all the world's replicas at once: LayerContext::group
  // Backward computes the gradients of variables from only the variables, the input and the output's gradient,
  // leaves those unchanged, and submits all of that to LayerContext::variables_stream(). Not together with
  // backward_in_place.
  bool variables_beside = false;
};

// Max pooling that a layer does before its own work, in place of the preceding layer: from x to the layer's input.
struct PoolingPrologue {
  Kernels::MaxPool pool;
  TensorView x;
  TensorView x_gradient = {};  // backward only; undefined: not wanted
};

// All replicas that train together, in all processes.
struct ReplicaGroup {
  int world_replicas = 1;
  int replica = 0;  // this replica's number in the world
  // In stream order, replaces the f32 tensor by the sum of all replicas' tensors. All replicas must make the same
  // calls in the same order.
  std::function<void(const TensorView&)> sum;
};

// The arguments of one call. The first extent of views is the batch's rows.
struct LayerContext {
  Stream& stream;
  Kernels& kernels;
  Mode mode = Mode::kTrain;
  Precision precision = Precision::kF32;
  std::uint64_t seed = 0;
  int id = 0;  // the layer's number in its graph
  const StepScalars* scalars = nullptr;
  const ReplicaGroup* group = nullptr;  // null outside training, or if the world has one replica

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
  std::vector<TensorView> variable_gradients = {};  // undefined for variables that are not trained
  Stream* beside = nullptr;                         // see variables_stream()

  // Returns the stream for the gradients of variables in backward() of a layer with LayerTraits::variables_beside.
  // It has waited for everything submitted to `stream` before the call, and `stream` does not wait for it.
  Stream& variables_stream() const noexcept { return beside != nullptr ? *beside : stream; }
};

// With the shapes of its inputs, attributes from which a layer can be recreated.
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
  // Returns whether any of variables() is trained.
  bool has_trained_variables() const;
  // Returns whether backward() can undo an epilogue on devices with these kernels, recomputing the activation's
  // input, and gains by it. Only called if no input's gradient is wanted. `activations` is their storage type.
  virtual bool recomputes(const Kernels&, DType activations, Precision) const {
    (void)activations;
    return false;
  }
  // Returns the activation that this layer is, if the preceding layer may apply it instead.
  virtual std::optional<Activation> as_epilogue() const { return std::nullopt; }
  // Returns the max pooling that this layer is, if the next layer may do it instead; argmax is the first of
  // saved().
  virtual std::optional<PoolOptions> as_pooling() const { return std::nullopt; }

  virtual void forward(LayerContext& context) const = 0;
  // Computes from output_gradient the input and variable gradients that are defined.
  virtual void backward(LayerContext& context) const = 0;

 private:
  std::string name_;
  Shape shape_;
};

// The record from which a layer can be recreated.
struct LayerRecord {
  std::string name;
  std::vector<Shape> inputs;
  LayerAttributes attributes;
};

// Makes a layer of one kind. Throws ConfigError if the record does not fit.
using LayerMaker = std::function<std::shared_ptr<const Layer>(const LayerRecord&)>;
using LayerMakers = std::map<std::string, LayerMaker>;  // by kind

// Returns "layer 'conv_2' (conv)", as messages name a layer.
std::string label(const std::string& name, const std::string& kind);
// Returns the view as (rows, last extent).
TensorView as_matrix(const TensorView& view);

}  // namespace headrace
