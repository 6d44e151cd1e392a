// Losses that are the mean, or the sum, over an example's elements.
#include "headrace/train/losses.h"
#include "headrace/train/objectives/losses/result_checks.h"

namespace headrace {
namespace {

class MeanOverElements final : public LossFunction {
 public:
  MeanOverElements(std::string name, ElementLoss loss, float label_smoothing)
      : name_(std::move(name)), loss_(loss), label_smoothing_(label_smoothing) {}

  std::string name() const override { return name_; }
  void check_result(const ResultInfo& result) const override {
    if (loss_ == ElementLoss::kBinaryFromLogits && result.softmax) check_logits(result, true);
  }
  void check_labels(const ResultInfo& result, const Field& labels) const override {
    check_targets(name_, result, labels);
  }
  bool takes_weights() const override { return true; }
  std::string options_json() const override {
    const bool from_logits = loss_ == ElementLoss::kBinaryFromLogits;
    if (!from_logits && loss_ != ElementLoss::kBinaryFromProbabilities) return "{}";
    return cross_entropy_json(from_logits, label_smoothing_);
  }

  void submit(const LossCall& call) const override {
    call.kernels.element_loss(call.stream, loss_, call.result, call.labels, label_smoothing_,
                              {call.scalars, call.weights}, call.gradient, call.sums);
  }

 private:
  std::string name_;
  ElementLoss loss_;
  float label_smoothing_;
};

// `name` is used in messages.
Loss mean_over_elements(const std::string& name, ElementLoss loss, Reduction reduction,
                        float label_smoothing = 0) {
  Loss made(std::make_shared<MeanOverElements>(name, loss, label_smoothing));
  made.reduction = reduction;
  return made;
}

}  // namespace

Loss mean_squared_error(Reduction reduction) {
  return mean_over_elements("mean_squared_error", ElementLoss::kSquaredError, reduction);
}

Loss mean_absolute_error(Reduction reduction) {
  return mean_over_elements("mean_absolute_error", ElementLoss::kAbsoluteError, reduction);
}

Loss huber(Reduction reduction) { return mean_over_elements("huber", ElementLoss::kHuber, reduction); }

Loss hinge(Reduction reduction) { return mean_over_elements("hinge", ElementLoss::kHinge, reduction); }

Loss kl_divergence(Reduction reduction) {
  return mean_over_elements("kl_divergence", ElementLoss::kKullbackLeibler, reduction);
}

Loss binary_crossentropy(const BinaryCrossEntropyOptions& options) {
  check_smoothing(options.label_smoothing);
  return mean_over_elements(
      "binary_crossentropy",
      options.from_logits ? ElementLoss::kBinaryFromLogits : ElementLoss::kBinaryFromProbabilities,
      options.reduction, options.label_smoothing);
}

}  // namespace headrace
