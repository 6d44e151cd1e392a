// Scaled dot-product attention of several heads, over queries, keys, values and perhaps a mask: softmax(q k' /
// sqrt(the width of a head's keys)) v.
#pragma once

#include "headrace/train/net/layers/layer.h"

namespace headrace {

class AttentionLayer final : public Layer {
 public:
  // `inputs`: the shapes of queries, keys, values and, if there is one, the mask.
  AttentionLayer(const std::string& name, const std::vector<Shape>& inputs, int heads,
                 const AttentionLayerOptions& options);

  static std::shared_ptr<const Layer> from(const LayerRecord& record);

  std::string kind() const override { return "attention"; }
  LayerAttributes attributes() const override;
  // The probabilities; and those that dropout has left, in whose place backward() computes their gradient.
  std::vector<SavedSpec> saved(const StepShape& step) const override;
  LayerTraits traits(Mode) const override { return {.backward_reads_input = true, .casts = true}; }
  void forward(LayerContext& context) const override;
  void backward(LayerContext& context) const override;

 private:
  bool drops(const LayerContext& context) const { return context.mode == Mode::kTrain && options_.dropout > 0; }
  Kernels::Matrices of_heads(const TensorView& sequences, bool transposed = false) const;
  float scale() const;

  std::int64_t heads_, queries_, positions_;
  std::int64_t key_width_;  // of a head
  AttentionLayerOptions options_;
};

}  // namespace headrace
