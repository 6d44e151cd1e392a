// Layers: the options of the built-in ones, and the base class Layer. A custom layer derives from Layer and is
// added by Graph::call(). Layers are const; all that changes is in the context, so that one object serves all
// replicas.
#pragma once

#include <array>
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
#include "headrace/devices/base/option_visitor.h"
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
  // range. number() also accepts a whole number, whole_numbers() one in place of a list.
  bool flag(const std::string& name) const;
  int whole(const std::string& name) const;
  float number(const std::string& name) const;
  std::string text(const std::string& name) const;
  Shape shape(const std::string& name) const;
  std::vector<std::int64_t> whole_numbers(const std::string& name) const;
  bool has(const std::string& name) const noexcept;

  bool operator==(const Attributes&) const = default;

 private:
  const Value& find(const std::string& name) const;

  std::vector<Entry> entries_;
};

// Write fields into attributes, and read them from there: `show` shows the fields to a visitor. An absent
// attribute leaves its field unchanged. Throws ConfigError for a value of the wrong type, for an attribute that is
// not a field, and if one of the first `required` fields is absent.
Attributes attributes_of(const std::function<void(OptionVisitor&)>& show);
void read_attributes(const Attributes& attributes, int required, const std::function<void(OptionVisitor&)>& show);

template <typename Options>
requires requires(Options options, OptionVisitor& visit) { options.each_field(visit); }
HEADRACE_HIDDEN Attributes attributes_of(Options options) {
  return attributes_of([&](OptionVisitor& visit) { options.each_field(visit); });
}

// --- options of layers ---

// Padding with zeros, chosen for height and width separately.
enum class ConvPadding {
  kSame,    // output extent = ceil(input / stride); an odd pixel of padding goes below and to the right
  kEven,    // the same extents, with dilation * (kernel - 1) / 2 pixels on both sides for any stride, as in
            // PyTorch's nets; for odd kernels
  kValid,   // no padding
  kPixels,  // `pixels` on both sides, PyTorch's padding=pixels
};
constexpr std::array<const char*, 4> choice_names(ConvPadding) { return {"same", "even", "valid", "pixels"}; }

// Initializes weights; biases start at 0.
enum class Initializer {
  kGlorotUniform,  // uniform in +-sqrt(6 / (fan_in + fan_out)), Keras's default
  kHeUniform,      // uniform in +-sqrt(6 / fan_in), for deep ReLU nets
  kFanInUniform,   // uniform in +-1 / sqrt(fan_in), PyTorch's default
  kDirac,          // kFanInUniform, but each of a convolution's first filters passes one channel through unchanged
  kUnitDeviation,  // uniform, divided by the standard deviation of the drawn values
};
constexpr std::array<const char*, 5> choice_names(Initializer) {
  return {"glorot_uniform", "he_uniform", "fan_in_uniform", "dirac", "unit_deviation"};
}

constexpr std::array<const char*, 10> choice_names(Activation) {
  return {"linear", "relu", "gelu", "silu", "sigmoid", "tanh", "leaky_relu", "elu", "softplus", "softmax"};
}
// Returns the activation's word: "relu", "leaky_relu" ...; kNone is "linear". activation_named() is its inverse
// and throws ConfigError listing the words.
std::string to_text(Activation activation);
Activation activation_named(const std::string& word);

// Visits one number for both axes, or a pair (height, width). Throws ConfigError for more numbers, and
// visit_square() for a pair of two different ones.
void visit_extents(OptionVisitor& visit, const char* name, HeightWidth& extents, const char* sentence);
void visit_square(OptionVisitor& visit, const char* name, int& extent, const char* sentence);

// Each struct below has the options of one kind of layer, which kDoc explains. The fields that each_field() visits
// are the layer's attributes, by these names, in the JSON of a net, in Python and here. The first kRequired of
// them have no default: Graph's methods take them as arguments. Where the struct has `activation`, that layer
// follows this one, fused if possible. An empty name becomes "<kind>", "<kind>_1", ...

struct LayerOptions {
  std::string name = {};
};

// What the windows of convolutions have in common.
template <typename Options>
void visit_window(OptionVisitor& visit, Options& options) {
  visit_extents(visit, "kernel", options.kernel,
                "One number, or height and width: (1, 7) is one row of seven taps.");
  visit_extents(visit, "stride", options.stride, "Pixels from one window to the next.");
  visit_extents(visit, "dilation", options.dilation,
                "Pixels from one tap of the kernel to the next: it spans dilation * (kernel - 1) + 1.");
  visit("padding", options.padding,
        "\"same\": the extents are those of the input over the stride, rounded up; \"even\": PyTorch's "
        "dilation * (kernel - 1) / 2 on both sides; \"valid\": none; \"pixels\": that many on both sides.");
  visit_extents(visit, "pixels", options.pixels, "The padding on both sides, if it is \"pixels\".");
}

struct ConvLayerOptions {
  static constexpr const char* kKind = "conv";
  static constexpr const char* kDoc =
      "A two-dimensional convolution of an image (height, width, channels). The weights are (filters, height, "
      "width, channels / groups).";
  static constexpr int kRequired = 1;

  int filters = 0;
  HeightWidth kernel = 3;
  HeightWidth stride = 1;
  HeightWidth dilation = 1;
  ConvPadding padding = ConvPadding::kSame;
  HeightWidth pixels = 0;
  int groups = 1;
  Activation activation = Activation::kNone;
  bool bias = true;
  bool trained_weights = true;
  Initializer initializer = Initializer::kGlorotUniform;  // kDirac for one group only
  std::string name = {};

  void each_field(OptionVisitor& visit) {
    visit("filters", filters, "Channels of the result.");
    visit_window(visit, *this);
    visit("groups", groups,
          "Groups of channels, each convolved separately into filters / groups channels of the result.");
    visit("bias", bias, "Whether a trained bias is added.");
    visit("trained_weights", trained_weights,
          "False: the weights keep their values, and no gradient is computed.");
    visit("initializer", initializer, "How the weights begin.");
  }
};

struct ConvTransposeLayerOptions {
  static constexpr const char* kKind = "conv_transpose";
  static constexpr const char* kDoc =
      "The gradient of a convolution, from its result to its input, as a layer: it enlarges an image (height, "
      "width, channels). The extents are `stride` times the input's; with \"valid\" padding, span - stride more "
      "if "
      "that is above 0; with \"pixels\", as in PyTorch.";
  static constexpr int kRequired = 1;

  int filters = 0;
  HeightWidth kernel = 3;
  HeightWidth stride = 1;
  HeightWidth dilation = 1;
  ConvPadding padding = ConvPadding::kSame;
  HeightWidth pixels = 0;
  // The span is dilation * (kernel - 1) + 1, the padding that of both sides: for kSame twice span / 2, as in
  // Keras.
  HeightWidth output_padding = -1;
  int groups = 1;
  Activation activation = Activation::kNone;
  bool bias = true;
  bool trained_weights = true;
  Initializer initializer = Initializer::kGlorotUniform;  // not kDirac
  std::string name = {};

  void each_field(OptionVisitor& visit) {
    visit("filters", filters, "Channels of the result.");
    visit_window(visit, *this);
    visit_extents(visit, "output_padding", output_padding,
                  "Rows and columns beyond (input - 1) * stride + span - padding, below stride; -1: the usual "
                  "extents.");
    visit("groups", groups, "Groups of channels, as conv() has them.");
    visit("bias", bias, "Whether a trained bias is added.");
    visit("trained_weights", trained_weights,
          "False: the weights keep their values, and no gradient is computed.");
    visit("initializer", initializer, "How the weights begin.");
  }
};

struct DepthwiseConvLayerOptions {
  static constexpr const char* kKind = "depthwise_conv";
  static constexpr const char* kDoc =
      "A convolution of each channel separately: channel o of the result is made from channel o / multiplier.";

  HeightWidth kernel = 3;
  HeightWidth stride = 1;
  HeightWidth dilation = 1;
  ConvPadding padding = ConvPadding::kSame;
  HeightWidth pixels = 0;
  int multiplier = 1;
  Activation activation = Activation::kNone;
  bool bias = true;
  bool trained_weights = true;
  Initializer initializer = Initializer::kGlorotUniform;  // not kDirac
  std::string name = {};

  void each_field(OptionVisitor& visit) {
    visit_window(visit, *this);
    visit("multiplier", multiplier, "Filters for each channel.");
    visit("bias", bias, "Whether a trained bias is added.");
    visit("trained_weights", trained_weights,
          "False: the weights keep their values, and no gradient is computed.");
    visit("initializer", initializer, "How the weights begin.");
  }
};

struct DenseLayerOptions {
  static constexpr const char* kKind = "dense";
  static constexpr const char* kDoc =
      "A product with a trained matrix. Acts on the last axis; any other axes count as rows.";
  static constexpr int kRequired = 1;

  int units = 0;
  Activation activation = Activation::kNone;
  bool bias = true;
  Initializer initializer = Initializer::kGlorotUniform;
  std::string name = {};

  void each_field(OptionVisitor& visit) {
    visit("units", units, "Features of the result.");
    visit("bias", bias, "Whether a trained bias is added.");
    visit("initializer", initializer, "How the weights begin.");
  }
};

struct BatchNormLayerOptions {
  static constexpr const char* kKind = "batch_norm";
  static constexpr const char* kDoc =
      "Batch normalisation over all axes but the last. Running statistics, which are averaged over replicas every "
      "step, take the place of a batch's outside training.";

  float momentum = 0.99F;
  float epsilon = 1e-3F;
  bool scale = true;
  bool synchronised = false;
  std::string name = {};

  void each_field(OptionVisitor& visit) {
    visit("momentum", momentum, "running = momentum * running + (1 - momentum) * batch.");
    visit("epsilon", epsilon, "Added to the variance.");
    visit("scale", scale, "Whether gamma is learned; false: it is 1.");
    visit("synchronised", synchronised,
          "Whether statistics are those of all replicas' rows, which costs a sum over replicas each way; false: "
          "those of each replica's own rows.");
  }
};

struct MaxPoolLayerOptions {
  static constexpr const char* kKind = "max_pool";
  static constexpr const char* kDoc = "The maximum of each window of an image.";
  static constexpr int kRequired = 1;

  int window = 0;
  int stride = 0;
  int padding = 0;
  std::string name = {};

  void each_field(OptionVisitor& visit) {
    visit_square(visit, "window", window, "Height and width of the window.");
    visit_square(visit, "stride", stride, "Pixels from one window to the next; 0: the window.");
    visit_square(visit, "padding", padding,
                 "Pixels beyond each side that windows may cover, at most half a window, as in PyTorch; they are "
                 "never the maximum.");
  }
};

struct AveragePoolLayerOptions {
  static constexpr const char* kKind = "average_pool";
  static constexpr const char* kDoc = "The mean of each window of an image.";
  static constexpr int kRequired = 1;

  int window = 0;
  int stride = 0;
  std::string name = {};

  void each_field(OptionVisitor& visit) {
    visit_square(visit, "window", window, "Height and width of the window.");
    visit_square(visit, "stride", stride, "Pixels from one window to the next; 0: the window.");
  }
};

struct LayerNormLayerOptions {
  static constexpr const char* kKind = "layer_norm";
  static constexpr const char* kDoc =
      "Normalises the last axis of each example by its own mean and variance, in f32.";

  float epsilon = 1e-3F;
  bool scale = true;
  bool center = true;
  std::string name = {};

  void each_field(OptionVisitor& visit) {
    visit("epsilon", epsilon, "Added to the variance. The default is Keras's; PyTorch's is 1e-5.");
    visit("scale", scale, "Whether gamma is learned; false: it is 1.");
    visit("center", center, "Whether beta is learned; false: it is 0.");
  }
};

struct EmbeddingLayerOptions {
  static constexpr const char* kKind = "embedding";
  static constexpr const char* kDoc =
      "Replaces each number of the input, from 0 to entries - 1, by a trained vector: (positions) becomes "
      "(positions, "
      "width). A number that has no entry gives NaN, which stops the training.";
  static constexpr int kRequired = 2;

  int entries = 0;
  int width = 0;
  std::string name = {};

  void each_field(OptionVisitor& visit) {
    visit("entries", entries, "The number of vectors.");
    visit("width", width, "Features of a vector.");
  }
};

struct DropoutLayerOptions {
  static constexpr const char* kKind = "dropout";
  static constexpr const char* kDoc =
      "Drops elements at random in training and scales the others up; otherwise it changes nothing. What is "
      "dropped "
      "depends on the seed, the step and the row in the global batch, not on the number of replicas.";
  static constexpr int kRequired = 1;

  float rate = 0;
  std::string name = {};

  void each_field(OptionVisitor& visit) { visit("rate", rate, "The share of elements that is dropped."); }
};

struct ScaleLayerOptions {
  static constexpr const char* kKind = "scale";
  static constexpr const char* kDoc = "Multiplies by a fixed factor.";
  static constexpr int kRequired = 1;

  float factor = 1;
  std::string name = {};

  void each_field(OptionVisitor& visit) { visit("factor", factor, "What the input is multiplied by."); }
};

struct AttentionLayerOptions {
  static constexpr const char* kKind = "attention";
  static constexpr const char* kDoc =
      "For each query the mean of the values, weighted by softmax(query keys' / sqrt(width of a head's keys)), in "
      "each of `heads` equal parts of the features separately: queries (T, H D), keys (S, H D) and values (S, H "
      "E) "
      "become (T, H E). value: by default the query; key: by default the value. mask (S): where it is 0, no query "
      "looks; if it leaves out all positions, their weights are equal.";

  int heads = 1;
  bool causal = false;
  float dropout = 0;
  std::string name = {};

  void each_field(OptionVisitor& visit) {
    visit("heads", heads, "Equal parts of the features.");
    visit("causal", causal, "Whether queries look only at positions up to their own.");
    visit("dropout", dropout, "The share of probabilities that is dropped in training.");
  }
};

// Not a kind of layer: an attention within dense layers, as Keras's MultiHeadAttention is.
struct MultiHeadAttentionLayerOptions {
  static constexpr const char* kKind = "multi_head_attention";
  static constexpr const char* kDoc =
      "Attention of a sequence (T, features) to itself, or of queries to values, between dense layers: "
      "'NAME/query', "
      "'NAME/value' and 'NAME/key' before it, of heads * key_dim units (value: heads * value_dim), and 'NAME' "
      "after "
      "it. value, key and mask: as attention() takes them.";
  static constexpr int kRequired = 2;

  int heads = 0;
  int key_dim = 0;
  int value_dim = 0;
  int output_dim = 0;
  bool causal = false;
  float dropout = 0;
  bool bias = true;
  Initializer initializer = Initializer::kGlorotUniform;
  std::string name = {};

  void each_field(OptionVisitor& visit) {
    visit("heads", heads, "How many attentions run side by side.");
    visit("key_dim", key_dim, "The width of each head's queries and keys.");
    visit("value_dim", value_dim, "The width of each head's values; 0: key_dim.");
    visit("output_dim", output_dim, "Features of the result; 0: those of the queries.");
    visit("causal", causal, "Whether queries look only at positions up to their own.");
    visit("dropout", dropout, "The share of probabilities that is dropped in training.");
    visit("bias", bias, "Whether the dense layers add trained biases.");
    visit("initializer", initializer, "How the weights of the dense layers begin.");
  }
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

// A built-in kind of layer.
struct LayerKind {
  std::string name;
  std::string doc;
  LayerMaker make;
  // Shows options with default values to the visitor; returns what it made of them.
  std::function<LayerAttributes(OptionVisitor& visit)> attributes;
  int required = 0;        // how many options, the first ones, have no default
  bool activates = false;  // can be followed by an activation that is its option
  bool several = false;    // takes a list of inputs
};

// Returns all of them, ordered by name.
const std::vector<LayerKind>& layer_kinds();

// Returns "layer 'conv_2' (conv)", as messages name a layer.
std::string label(const std::string& name, const std::string& kind);
// Returns the view as (rows, last extent).
TensorView as_matrix(const TensorView& view);

}  // namespace headrace
