// A loss that the host computes one example at a time.
#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/train/losses.h"

namespace headrace {
namespace {

// The parts of pinned scratch.
enum HostPart { kHostScalars, kHostResult, kHostLabels, kHostLosses, kHostGradient, kHostWeights };

class HostLoss final : public LossFunction {
 public:
  using Function = std::function<double(const HostExample&)>;

  HostLoss(std::string name, Function function) : name_(std::move(name)), function_(std::move(function)) {}

  std::string name() const override { return name_; }
  void check_result(const ResultInfo&) const override {}
  void check_labels(const ResultInfo&, const Field& labels) const override {
    if (labels.dtype == DType::kF32 || (labels.dtype == DType::kI64 && labels.shape.elements() == 1)) return;
    throw ConfigError("field '" + labels.name + "' is " + to_string(labels.dtype) + " of shape " +
                      labels.shape.to_string() + "; " + name_ + " is given float32, or one int64 an example");
  }

  bool takes_weights() const override { return true; }
  ScratchSpec scratch(const TensorView& result, const TensorView& labels) const override {
    const TensorView losses{nullptr, {result.shape[0]}, DType::kF32};
    const TensorView scalars{nullptr, {static_cast<std::int64_t>(sizeof(StepScalars))}, DType::kU8};
    return {.device = {losses}, .pinned = {scalars, result, labels, losses, result, losses}};
  }

  void submit(const LossCall& call) const override {
    const std::vector<TensorView>& host = call.pinned_scratch;
    call.stream.copy(host[kHostScalars].data, call.scalars, sizeof(StepScalars));
    call.stream.copy(host[kHostResult].data, call.result.data, call.result.bytes());
    call.stream.copy(host[kHostLabels].data, call.labels.data, call.labels.bytes());
    const bool learns = call.gradient.defined(), weighted = call.weights.defined();
    if (weighted) call.stream.copy(host[kHostWeights].data, call.weights.data, call.weights.bytes());
    call.stream.call([function = function_, host, learns, weighted] {
      compute(function, host, learns, weighted ? host[kHostWeights].as<const float>() : nullptr);
    });
    const TensorView& losses = call.device_scratch.front();
    call.stream.copy(losses.data, host[kHostLosses].data, losses.bytes());
    if (learns) call.stream.copy(call.gradient.data, host[kHostGradient].data, call.gradient.bytes());
    call.kernels.add_losses(call.stream, losses, {call.scalars, call.weights}, call.sums);
  }

 private:
  // `weights` may be null: they are 1.
  static void compute(const Function& function, const std::vector<TensorView>& host, bool learns,
                      const float* weights) {
    const auto& scalars = *host[kHostScalars].as<StepScalars>();
    const TensorView &result = host[kHostResult], &labels = host[kHostLabels];
    const auto width = static_cast<std::size_t>(result.elements() / result.shape[0]);
    const auto label_width = static_cast<std::size_t>(labels.elements() / labels.shape[0]);
    float* gradient = host[kHostGradient].as<float>();
    if (learns) std::fill_n(gradient, result.elements(), 0.0F);
    for (std::int64_t row = 0; row < scalars.rows; ++row) {
      const auto at = static_cast<std::size_t>(row);
      HostExample example{.result = {result.as<float>() + at * width, width}};
      if (labels.dtype == DType::kF32) example.labels = {labels.as<float>() + at * label_width, label_width};
      if (labels.dtype == DType::kI64) example.class_number = labels.as<std::int64_t>()[at];
      if (learns) example.gradient = {gradient + at * width, width};
      host[kHostLosses].as<float>()[at] = static_cast<float>(function(example));
      const float factor = scalars.inverse_global_rows * (weights == nullptr ? 1.0F : weights[at]);
      for (float& slope : example.gradient) slope *= factor;
    }
  }

  std::string name_;
  Function function_;
};

}  // namespace

Loss host_loss(const std::string& name, std::function<double(const HostExample&)> function) {
  if (!function) throw ConfigError("host_loss '" + name + "' has no function");
  return std::make_shared<HostLoss>(name, std::move(function));
}

}  // namespace headrace
