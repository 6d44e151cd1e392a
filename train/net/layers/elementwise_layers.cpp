// Layers whose result has the input's shape and depends on single elements, or for softmax on one row: activations
// and their words, dropout, scale, add, softmax.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "headrace/devices/base/error.h"
#include "headrace/train/net/layers/layer.h"

namespace headrace {
namespace {

class ActivationLayer final : public Layer {
 public:
  // REQUIRES: neither kNone nor kSoftmax.
  ActivationLayer(const std::string& name, const Shape& input, Activation activation)
      : Layer(name, input), activation_(activation) {}

  std::string kind() const override { return to_text(activation_); }

  // If the derivative follows from the result, the input need not be kept.
  LayerTraits traits(Mode) const override {
    const bool result = reads_result();
    return {.backward_in_place = true, .backward_reads_input = !result, .backward_reads_output = result};
  }

  std::optional<Activation> as_epilogue() const override {
    return is_fused(activation_) ? std::optional(activation_) : std::nullopt;
  }

  void forward(LayerContext& context) const override {
    context.kernels.activation_forward(context.stream, {activation_, context.inputs[0], context.output});
  }

  void backward(LayerContext& context) const override {
    if (!context.input_gradients[0].defined()) return;
    context.kernels.activation_backward(
        context.stream, {activation_, reads_result() ? context.output : context.inputs[0], context.output_gradient,
                         context.input_gradients[0]});
  }

 private:
  bool reads_result() const noexcept { return activation_ == Activation::kRelu || slope_from_result(activation_); }

  Activation activation_;
};

struct SoftmaxLayerOptions : NoOptions {
  static constexpr const char* kKind = "softmax";
  static constexpr const char* kDoc =
      "Probabilities over the last axis. If it is a model's last layer, a cross-entropy skips it and takes the "
      "logits.";
};

class SoftmaxLayer final : public OptionLayer<SoftmaxLayerOptions> {
 public:
  using OptionLayer::OptionLayer;

  LayerTraits traits(Mode) const override {
    return {.backward_in_place = true, .backward_reads_output = true, .softmax = true, .f32 = true};
  }

  void forward(LayerContext& context) const override {
    context.kernels.softmax(context.stream, {as_matrix(context.inputs[0]), as_matrix(context.output)});
  }

  void backward(LayerContext& context) const override {
    if (!context.input_gradients[0].defined()) return;
    context.kernels.softmax_backward(
        context.stream,
        {as_matrix(context.output), as_matrix(context.output_gradient), as_matrix(context.input_gradients[0])});
  }
};

// The mask is a function of seed, step and global row.
class DropoutLayer final : public OptionLayer<DropoutLayerOptions> {
 public:
  DropoutLayer(const std::string& name, const Shape& input, const DropoutLayerOptions& options)
      : OptionLayer(name, input, options) {
    if (options.rate >= 0.0F && options.rate < 1.0F) return;
    throw ConfigError(label(name, "dropout") + " needs a rate of at least 0 and below 1, got " +
                      std::to_string(options.rate));
  }

  LayerTraits traits(Mode mode) const override {
    return {.view = mode != Mode::kTrain, .backward_in_place = true};
  }

  void forward(LayerContext& context) const override { apply(context, context.inputs[0], context.output); }

  void backward(LayerContext& context) const override {
    if (context.input_gradients[0].defined()) apply(context, context.output_gradient, context.input_gradients[0]);
  }

 private:
  void apply(LayerContext& context, const TensorView& from, const TensorView& to) const {
    context.kernels.dropout(context.stream, {from, to, options_.rate, context.seed, context.id, context.scalars});
  }
};

class ScaleLayer final : public OptionLayer<ScaleLayerOptions> {
 public:
  ScaleLayer(const std::string& name, const Shape& input, const ScaleLayerOptions& options)
      : OptionLayer(name, input, options) {
    if (std::isfinite(options.factor)) return;
    throw ConfigError(label(name, "scale") + " needs a finite factor, got " + std::to_string(options.factor));
  }

  void forward(LayerContext& context) const override {
    context.kernels.scale(context.stream, {context.inputs[0], context.output, options_.factor});
  }

  void backward(LayerContext& context) const override {
    if (!context.input_gradients[0].defined()) return;
    context.kernels.scale(context.stream, {context.output_gradient, context.input_gradients[0], options_.factor});
  }
};

struct AddLayerFields : NoOptions {
  static constexpr const char* kKind = "add";
  static constexpr const char* kDoc = "The sum of two or more results of one shape: a residual connection.";
};

Shape sum_shape(const std::string& name, const std::vector<Shape>& inputs) {
  if (inputs.size() < 2) {
    throw ConfigError(label(name, "add") + " needs at least two inputs, got " + std::to_string(inputs.size()));
  }
  for (const Shape& shape : inputs) {
    if (shape == inputs.front()) continue;
    throw ConfigError(label(name, "add") + " needs inputs of one shape, got " + inputs.front().to_string() +
                      " and " + shape.to_string());
  }
  return inputs.front();
}

class AddLayer final : public OptionLayer<AddLayerFields> {
 public:
  AddLayer(const std::string& name, const std::vector<Shape>& inputs, const AddLayerFields& options)
      : OptionLayer(name, sum_shape(name, inputs), options) {}

  LayerTraits traits(Mode) const override { return {.backward_in_place = true}; }

  void forward(LayerContext& context) const override {
    context.kernels.add(context.stream, {context.inputs[0], context.inputs[1], context.output});
    for (std::size_t i = 2; i < context.inputs.size(); ++i) {
      context.kernels.accumulate(context.stream, {context.inputs[i], context.output});
    }
  }

  // Each input's gradient is the output's; one of them may lie in its place already.
  void backward(LayerContext& context) const override {
    for (const TensorView& into : context.input_gradients) {
      if (!into.defined() || into.data == context.output_gradient.data) continue;
      context.stream.copy(into.data, context.output_gradient.data, into.bytes());
    }
  }
};

}  // namespace

std::string to_text(Activation activation) {
  return choice_names(activation).at(static_cast<std::size_t>(activation));
}

Activation activation_named(const std::string& word) {
  static constexpr auto kActivationWords = choice_names(Activation::kNone);
  const auto found = std::ranges::find(kActivationWords, word);
  if (found != kActivationWords.end()) return static_cast<Activation>(found - kActivationWords.begin());
  throw ConfigError(fmt::format("there is no activation '{}'", word),
                    fmt::format("there are {}", fmt::join(kActivationWords, ", ")));
}

LayerKind activation_layer(Activation activation) {
  const auto make = [activation](const LayerRecord& record) -> std::shared_ptr<const Layer> {
    read_attributes(record.attributes, 0, [](OptionVisitor&) {});
    return std::make_shared<ActivationLayer>(record.name, only_input(record), activation);
  };
  const bool leaky = activation == Activation::kLeakyRelu;
  return {.name = to_text(activation),
          .doc = leaky ? fmt::format("With the slope {} below 0.", kLeakySlope) : "",
          .make = make,
          .attributes = [](OptionVisitor&) { return LayerAttributes(); }};
}

LayerKind softmax_layer() { return kind_of_layer<SoftmaxLayer>(); }
LayerKind dropout_layer() { return kind_of_layer<DropoutLayer>(); }
LayerKind scale_layer() { return kind_of_layer<ScaleLayer>(); }
LayerKind add_layer() { return kind_of_layer<AddLayer>(); }

}  // namespace headrace
