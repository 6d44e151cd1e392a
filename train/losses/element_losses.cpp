// Losses that are the mean over an example's elements.
#include "headrace/train/losses.h"
#include "headrace/train/losses/result_checks.h"

namespace headrace {
namespace {

class MeanOverElements final : public LossFunction {
 public:
  MeanOverElements(std::string name, ElementLoss loss) : name_(std::move(name)), loss_(loss) {}

  std::string name() const override { return name_; }
  void check_result(const ResultInfo& result) const override {
    if (loss_ == ElementLoss::kBinaryFromLogits && result.softmax) check_logits(result, true);
  }
  void check_labels(const ResultInfo& result, const Field& labels) const override {
    check_targets(name_, result, labels);
  }
  std::string options_json() const override {
    if (loss_ == ElementLoss::kBinaryFromLogits) return R"({"from_logits":true})";
    return loss_ == ElementLoss::kBinaryFromProbabilities ? R"({"from_logits":false})" : "{}";
  }

  void submit(const LossCall& call) const override {
    call.kernels.element_loss(call.stream, loss_, call.result, call.labels, call.scalars, call.gradient,
                              call.sums);
  }

 private:
  std::string name_;
  ElementLoss loss_;
};

// `name` stands in messages.
Loss mean_over_elements(const std::string& name, ElementLoss loss, Reduction reduction) {
  Loss made(std::make_shared<MeanOverElements>(name, loss));
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

Loss binary_crossentropy(const BinaryCrossEntropyOptions& options) {
  return mean_over_elements(
      "binary_crossentropy",
      options.from_logits ? ElementLoss::kBinaryFromLogits : ElementLoss::kBinaryFromProbabilities,
      options.reduction);
}

}  // namespace headrace
