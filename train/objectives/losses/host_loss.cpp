// Losses that the host computes, a batch or one example at a time.
#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/train/losses.h"

namespace headrace {
namespace {

// The parts of pinned scratch.
enum HostPart { kHostScalars, kHostResult, kHostLabels, kHostLosses, kHostGradient, kHostWeights };

using BatchFunction = std::function<void(const HostBatch&)>;

TensorView first_rows(const TensorView& view, std::int64_t rows) {
  return {view.data, view.shape.without_front().with_front(rows), view.dtype};
}

class HostLoss final : public LossFunction {
 public:
  HostLoss(std::string name, bool any_labels, BatchFunction function)
      : name_(std::move(name)), any_labels_(any_labels), function_(std::move(function)) {}

  std::string name() const override { return name_; }
  void check_result(const ResultInfo&) const override {}
  void check_labels(const ResultInfo&, const Field& labels) const override {
    if (any_labels_ || labels.dtype == DType::kF32) return;
    if (labels.dtype == DType::kI64 && labels.shape.elements() == 1) return;
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
    call.kernels.add_losses(call.stream, {losses, {call.scalars, call.weights}, call.sums});
  }

 private:
  // `weights` may be null: they are 1.
  static void compute(const BatchFunction& function, const std::vector<TensorView>& host, bool learns,
                      const float* weights) {
    const auto& scalars = *host[kHostScalars].as<StepScalars>();
    const TensorView& gradient = host[kHostGradient];
    if (learns) std::fill_n(gradient.as<float>(), gradient.elements(), 0.0F);
    if (scalars.rows == 0) return;
    function({.result = first_rows(host[kHostResult], scalars.rows),
              .labels = first_rows(host[kHostLabels], scalars.rows),
              .losses = {host[kHostLosses].as<float>(), static_cast<std::size_t>(scalars.rows)},
              .gradient = learns ? first_rows(gradient, scalars.rows) : TensorView{}});
    const std::int64_t width = gradient.elements() / gradient.shape[0];
    for (std::int64_t row = 0; learns && row < scalars.rows; ++row) {
      const float factor = scalars.inverse_global_rows * (weights == nullptr ? 1.0F : weights[row]);
      float* const slopes = gradient.as<float>() + row * width;
      for (std::int64_t i = 0; i < width; ++i) slopes[i] *= factor;
    }
  }

  std::string name_;
  bool any_labels_;
  BatchFunction function_;
};

// Calls the function for each example.
BatchFunction by_example(std::function<double(const HostExample&)> function) {
  return [function = std::move(function)](const HostBatch& batch) {
    const std::size_t rows = batch.losses.size();
    const auto width = static_cast<std::size_t>(batch.result.elements()) / rows;
    const auto label_width = static_cast<std::size_t>(batch.labels.elements()) / rows;
    for (std::size_t row = 0; row < rows; ++row) {
      HostExample example{.result = {batch.result.as<float>() + row * width, width}};
      if (batch.labels.dtype == DType::kF32) {
        example.labels = {batch.labels.as<float>() + row * label_width, label_width};
      } else {
        example.class_number = batch.labels.as<std::int64_t>()[row];
      }
      if (batch.gradient.defined()) example.gradient = {batch.gradient.as<float>() + row * width, width};
      batch.losses[row] = static_cast<float>(function(example));
    }
  };
}

template <typename Function>
void require_function(const char* maker, const std::string& name, const Function& function) {
  if (!function) throw ConfigError(std::string(maker) + " '" + name + "' has no function");
}

}  // namespace

Loss host_loss(const std::string& name, std::function<double(const HostExample&)> function) {
  require_function("host_loss", name, function);
  return std::make_shared<HostLoss>(name, /*any_labels=*/false, by_example(std::move(function)));
}

Loss host_batch_loss(const std::string& name, std::function<void(const HostBatch&)> function) {
  require_function("host_batch_loss", name, function);
  return std::make_shared<HostLoss>(name, /*any_labels=*/true, std::move(function));
}

}  // namespace headrace
