// Data with float labels, and losses as a program outside the tree would write them.
#pragma once

#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/losses.h"
#include "headrace/train/metrics.h"

namespace headrace::test {

// Inputs and labels of so many records, as floats.
struct FloatData {
  std::int64_t count = 0, width = 0, label_width = 0;
  std::vector<float> images, labels;

  Dataset dataset(const std::string& label_field = "label") const {
    const auto records = static_cast<std::size_t>(count);
    const Shape shape = label_width == 0 ? Shape{} : Shape{label_width};
    return Dataset::from(in_memory(
        "floats", records, {array_of("image", Shape{width}, images), array_of(label_field, shape, labels)}));
  }
};

// Labels in [0, 1) that follow from the inputs: each is a mean of two of them, rounded where they are shares.
// `label_width` 0: one number, without an axis.
inline FloatData float_data(std::int64_t count, std::int64_t width, std::int64_t label_width,
                            bool whole_numbers = false) {
  FloatData data{.count = count, .width = width, .label_width = label_width, .images = {}, .labels = {}};
  Philox random({.seed = 4});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::size_t begin = data.images.size();
    for (std::int64_t k = 0; k < width; ++k) data.images.push_back(random.uniform());
    for (std::int64_t k = 0; k < std::max<std::int64_t>(1, label_width); ++k) {
      const float mean = (data.images[begin + static_cast<std::size_t>(k % width)] +
                          data.images[begin + static_cast<std::size_t>((k + 1) % width)]) /
                         2;
      data.labels.push_back(whole_numbers ? std::round(mean) : mean);
    }
  }
  return data;
}

// A user's loss composed of tensor operations: cross-entropy of logits at a temperature.
class SoftenedCrossEntropy final : public LossFunction {
 public:
  explicit SoftenedCrossEntropy(float temperature) : temperature_(temperature) {}

  std::string name() const override { return "softened"; }
  void check_result(const ResultInfo&) const override {}
  void check_labels(const ResultInfo&, const Field&) const override {}
  ScratchSpec scratch(const TensorView& result, const TensorView&) const override {
    return {.device = {result, result}};
  }
  void submit(const LossCall& call) const override {
    const TensorView &softened = call.device_scratch[0], &gradient = call.device_scratch[1];
    call.kernels.scale(call.stream, {call.result, softened, 1 / temperature_});
    const bool learns = call.gradient.defined();
    call.kernels.soft_cross_entropy(
        call.stream, {softened, call.labels, learns ? gradient : TensorView{}, 0, call.scalars, call.sums});
    if (learns) call.kernels.scale(call.stream, {gradient, call.gradient, 1 / temperature_});
  }

 private:
  float temperature_;
};

// A user's loss as a function on the host: log of the hyperbolic cosine of the error, summed over the elements.
inline Loss log_cosh() {
  return host_loss("log_cosh", [](const HostExample& example) {
    double loss = 0;
    for (std::size_t i = 0; i < example.result.size(); ++i) {
      const double error = static_cast<double>(example.result[i]) - static_cast<double>(example.labels[i]);
      loss += std::log(std::cosh(error));
      if (!example.gradient.empty()) example.gradient[i] = static_cast<float>(std::tanh(error));
    }
    return loss;
  });
}

}  // namespace headrace::test
