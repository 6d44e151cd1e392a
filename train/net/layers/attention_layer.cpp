// Scaled dot-product attention of several heads, over queries, keys, values and perhaps a mask: softmax(q k' /
// sqrt(the width of a head's keys)) v.
#include <cmath>

#include "headrace/devices/base/error.h"
#include "headrace/train/net/layers/layer.h"

namespace headrace {
namespace {

// The inputs' shapes by name, and what each must be.
struct AttentionShapes {
  std::string who;
  const std::vector<Shape>& inputs;
  int heads;

  const Shape& queries() const { return inputs[0]; }
  const Shape& keys() const { return inputs[1]; }
  const Shape& values() const { return inputs[2]; }

  [[noreturn]] void refuse(const std::string& what, const std::string& hint = {}) const {
    throw ConfigError(who + " " + what, hint);
  }
  void check() const {
    if (inputs.size() != 3 && inputs.size() != 4) {
      refuse("has " + std::to_string(inputs.size()) +
             " inputs, it takes queries, keys, values and perhaps a mask");
    }
    if (heads < 1) refuse("needs at least one head, got " + std::to_string(heads));
    sequence("queries", queries());
    sequence("keys", keys());
    sequence("values", values());
    if (keys()[1] != queries()[1]) {
      refuse("has queries of shape " + queries().to_string() + " and keys of shape " + keys().to_string() +
                 ", which differ in their features",
             "give both through a dense() of equally many units; multi_head_attention() does");
    }
    if (values()[0] != keys()[0]) {
      refuse("has keys of shape " + keys().to_string() + " and values of shape " + values().to_string() +
                 ", which differ in their positions",
             "compute keys and values from one sequence");
    }
    if (inputs.size() == 4 && inputs[3] != Shape{keys()[0]}) {
      refuse("has a mask of shape " + inputs[3].to_string() +
                 ", it needs a number for each position: " + Shape{keys()[0]}.to_string(),
             "0 leaves a position out for all queries");
    }
  }
  void sequence(const std::string& name, const Shape& shape) const {
    if (shape.rank() != 2) {
      refuse("needs " + name + " of shape (positions, features), got " + shape.to_string(),
             shape.rank() == 1 ? "embedding() makes a sequence from numbers" : "");
    }
    if (shape[1] % heads == 0) return;
    refuse("has " + name + " of shape " + shape.to_string() + ", whose features cannot be divided among " +
               std::to_string(heads) + " heads",
           "make the features a multiple of the heads");
  }
};

Shape attended_shape(const AttentionShapes& shapes) {
  shapes.check();
  return Shape{shapes.queries()[0], shapes.values()[1]};
}

// The inputs are queries, keys, values and, if there is one, the mask.
class AttentionLayer final : public OptionLayer<AttentionLayerOptions> {
 public:
  AttentionLayer(const std::string& name, const std::vector<Shape>& inputs, const AttentionLayerOptions& options)
      : OptionLayer(name, attended_shape({label(name, "attention"), inputs, options.heads}), options),
        heads_(options.heads),
        queries_(inputs[0][0]),
        positions_(inputs[1][0]),
        key_width_(inputs[0][1] / options.heads) {
    if (options.dropout >= 0 && options.dropout < 1) return;
    throw ConfigError(label(name, "attention") + " needs a dropout of at least 0 and below 1, got " +
                      std::to_string(options.dropout));
  }

  // The probabilities; and those that dropout has left, in whose place backward() computes their gradient.
  std::vector<SavedSpec> saved(const StepShape& step) const override;
  LayerTraits traits(Mode) const override { return {.backward_reads_input = true, .casts = true}; }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  bool drops(const LayerContext& context) const { return context.mode == Mode::kTrain && options_.dropout > 0; }
  kernel::Matrices of_heads(const TensorView& sequences, bool transposed = false) const;
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(key_width_)); }

  std::int64_t heads_, queries_, positions_;
  std::int64_t key_width_;  // of a head
};

std::vector<SavedSpec> AttentionLayer::saved(const StepShape& step) const {
  const Shape scores{step.rows, heads_, queries_, positions_};
  return {{.shape = scores}, {.shape = scores}};
}

// Heads lie side by side in the features.
kernel::Matrices AttentionLayer::of_heads(const TensorView& sequences, bool transposed) const {
  const Shape& shape = sequences.shape;
  return {.tensor = {sequences.data, Shape{shape[0], shape[1], heads_, shape[2] / heads_}, sequences.dtype},
          .interleaved = true,
          .transposed = transposed};
}

void AttentionLayer::forward(LayerContext& context) const {
  Kernels& kernels = context.kernels;
  const TensorView& probabilities = context.saved[0];
  kernels.batched_matmul(context.stream, {of_heads(context.inputs[0]),
                                          of_heads(context.inputs[1], true),
                                          {.tensor = probabilities},
                                          scale(),
                                          context.precision});
  const bool masked = context.inputs.size() > 3;
  if (masked || options_.causal) {
    kernels.mask_scores(context.stream,
                        {probabilities, masked ? context.inputs[3] : TensorView{}, options_.causal});
  }
  kernels.softmax(context.stream, {probabilities, probabilities});
  if (drops(context)) {
    kernels.dropout(context.stream, {probabilities, context.saved[1], options_.dropout, context.seed, context.id,
                                     context.scalars});
  }
  kernels.batched_matmul(context.stream, {{.tensor = context.saved[drops(context) ? 1 : 0]},
                                          of_heads(context.inputs[2]),
                                          of_heads(context.output),
                                          1,
                                          context.precision});
}

// Gradients of values come first: they read what dropout has left.
void AttentionLayer::backward(LayerContext& context) const {
  Kernels& kernels = context.kernels;
  const TensorView &probabilities = context.saved[0], &slopes = context.saved[1];
  const kernel::Matrices dy = of_heads(context.output_gradient);
  const TensorView &dq = context.input_gradients[0], &dk = context.input_gradients[1],
                   &dv = context.input_gradients[2];
  if (dv.defined()) {
    kernels.batched_matmul(context.stream, {{.tensor = context.saved[drops(context) ? 1 : 0], .transposed = true},
                                            dy,
                                            of_heads(dv),
                                            1,
                                            context.precision});
  }
  if (context.input_gradients.size() > 3 && context.input_gradients[3].defined()) {
    context.stream.fill(context.input_gradients[3].data, 0, context.input_gradients[3].bytes());
  }
  if (!dq.defined() && !dk.defined()) return;
  kernels.batched_matmul(context.stream,
                         {dy, of_heads(context.inputs[2], true), {.tensor = slopes}, 1, context.precision});
  if (drops(context)) {
    kernels.dropout(context.stream, {slopes, slopes, options_.dropout, context.seed, context.id, context.scalars});
  }
  kernels.softmax_backward(context.stream, {probabilities, slopes, slopes});
  if (dq.defined()) {
    kernels.batched_matmul(
        context.stream,
        {{.tensor = slopes}, of_heads(context.inputs[1]), of_heads(dq), scale(), context.precision});
  }
  if (dk.defined()) {
    kernels.batched_matmul(context.stream, {{.tensor = slopes, .transposed = true},
                                            of_heads(context.inputs[0]),
                                            of_heads(dk),
                                            scale(),
                                            context.precision});
  }
}

}  // namespace

LayerKind attention_layer() { return kind_of_layer<AttentionLayer>(); }

}  // namespace headrace
