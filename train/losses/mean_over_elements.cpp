#include "headrace/train/losses/mean_over_elements.h"

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

  void submit(const LossCall& call) const override {
    call.kernels.element_loss(call.stream, loss_, call.result, call.labels, call.scalars, call.gradient,
                              call.sums);
  }

 private:
  std::string name_;
  ElementLoss loss_;
};

}  // namespace

Loss mean_over_elements(const std::string& who, ElementLoss loss, Reduction reduction) {
  Loss made(std::make_shared<MeanOverElements>(who, loss));
  made.reduction = reduction;
  return made;
}

}  // namespace headrace
