// The options of the built-in layers.
#pragma once

#include <array>
#include <string>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/option_visitor.h"
#include "headrace/devices/kernel_options.h"

namespace HEADRACE_API headrace {

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

// Shows the options that the windows of convolutions share.
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
    visit("initializer", initializer, "How the weights are initialized.");
  }
};

struct ConvTransposeLayerOptions {
  static constexpr const char* kKind = "conv_transpose";
  static constexpr const char* kDoc =
      "The gradient of a convolution, from its result to its input, as a layer: it enlarges an image (height, "
      "width, channels). The extents are `stride` times the input's; with \"valid\" padding, span - stride more "
      "if that is above 0; with \"pixels\", as in PyTorch.";
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
    visit("initializer", initializer, "How the weights are initialized.");
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
    visit("initializer", initializer, "How the weights are initialized.");
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
    visit("initializer", initializer, "How the weights are initialized.");
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
    visit("heads", heads, "The number of attention heads.");
    visit("key_dim", key_dim, "The width of each head's queries and keys.");
    visit("value_dim", value_dim, "The width of each head's values; 0: key_dim.");
    visit("output_dim", output_dim, "Features of the result; 0: those of the queries.");
    visit("causal", causal, "Whether queries look only at positions up to their own.");
    visit("dropout", dropout, "The share of probabilities that is dropped in training.");
    visit("bias", bias, "Whether the dense layers add trained biases.");
    visit("initializer", initializer, "How the weights of the dense layers are initialized.");
  }
};

}  // namespace headrace
