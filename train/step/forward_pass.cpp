#include "headrace/train/forward_pass.h"

#include "headrace/devices/base/error.h"
#include "headrace/train/step/batch_runner.h"
#include "headrace/train/step/example_losses.h"

namespace headrace {

ForwardPass::ForwardPass(const ModelState& model, const BatchRunner& runner, const Fields& fields)
    : model_(model), runner_(runner), fields_(fields) {}

ForwardPass::~ForwardPass() = default;

std::int64_t ForwardPass::examples(int replica) const {
  return runner_.last().shards.at(static_cast<std::size_t>(replica)).examples;
}

std::int64_t ForwardPass::global_examples() const { return runner_.last().position.global_examples; }

TensorView ForwardPass::predictions(int replica, int output) const {
  return runner_.program().results(runner_.binding(replica)).at(static_cast<std::size_t>(output));
}

TensorView ForwardPass::prediction_gradients(int replica, int output) const {
  const std::vector<TensorView> gradients = runner_.program().result_gradients(runner_.binding(replica));
  if (gradients.empty()) throw ConfigError("a pass without training has no gradients", "take that of a Trainer");
  return gradients.at(static_cast<std::size_t>(output));
}

float ForwardPass::gradient_scale() const { return runner_.last().shards.front().scalars->inverse_global_rows; }

TensorView ForwardPass::labels(int replica, const std::string& field) const {
  return runner_.labels(replica, field);
}

std::vector<float> ForwardPass::example_losses(int replica) const {
  if (losses_ == nullptr) losses_ = std::make_unique<ExampleLosses>(model_, runner_, fields_);
  return losses_->read(replica);
}

}  // namespace headrace
