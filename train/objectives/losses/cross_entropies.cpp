// Cross-entropies of one class of several: against class numbers, and against a share for each class.
#include "headrace/train/losses.h"
#include "headrace/train/objectives/losses/result_checks.h"

namespace headrace {
namespace {

class SparseCrossEntropy final : public LossFunction {
 public:
  explicit SparseCrossEntropy(const SparseCrossEntropyOptions& options) : options_(options) {}

  std::string name() const override { return "sparse_categorical_crossentropy"; }
  void check_result(const ResultInfo& result) const override {
    check_several_classes("the loss", result);
    check_softmax(result, options_.from_logits);
  }
  std::optional<ResultTask> task(const ResultInfo&) const override {
    return ResultTask{Task::kCategorical, options_.from_logits};
  }
  void check_labels(const ResultInfo&, const Field& labels) const override {
    check_class_number("the loss", labels);
  }
  ResultForm form() const override { return options_.from_logits ? ResultForm::kWhole : ResultForm::kLogits; }
  bool takes_class_numbers() const override { return true; }
  bool counts_correct() const override { return true; }
  bool takes_weights() const override { return true; }
  std::optional<Attributes> attributes() const override { return attributes_of(options_); }

  void submit(const LossCall& call) const override {
    call.kernels.softmax_cross_entropy(call.stream,
                                       {call.result, call.labels, call.gradient, options_.label_smoothing,
                                        ExampleRows(call.scalars, call.weights), call.sums});
  }

 private:
  SparseCrossEntropyOptions options_;
};

class DenseCrossEntropy final : public LossFunction {
 public:
  explicit DenseCrossEntropy(const CrossEntropyOptions& options) : options_(options) {}

  std::string name() const override { return "categorical_crossentropy"; }
  void check_result(const ResultInfo& result) const override {
    check_several_classes("the loss", result);
    check_softmax(result, options_.from_logits);
  }
  std::optional<ResultTask> task(const ResultInfo&) const override {
    return ResultTask{Task::kCategorical, options_.from_logits};
  }
  void check_labels(const ResultInfo& result, const Field& labels) const override {
    check_class_shares("the loss", result, labels);
  }
  ResultForm form() const override { return options_.from_logits ? ResultForm::kWhole : ResultForm::kLogits; }
  bool takes_weights() const override { return true; }
  std::optional<Attributes> attributes() const override { return attributes_of(options_); }

  void submit(const LossCall& call) const override {
    call.kernels.soft_cross_entropy(call.stream,
                                    {call.result, call.labels, call.gradient, options_.label_smoothing,
                                     ExampleRows(call.scalars, call.weights), call.sums});
  }

 private:
  CrossEntropyOptions options_;
};

}  // namespace

Loss sparse_categorical_crossentropy(const SparseCrossEntropyOptions& options) {
  check_smoothing(options.label_smoothing);
  Loss loss(std::make_shared<SparseCrossEntropy>(options));
  loss.reduction = options.reduction;
  return loss;
}

Loss categorical_crossentropy(const CrossEntropyOptions& options) {
  check_smoothing(options.label_smoothing);
  Loss loss(std::make_shared<DenseCrossEntropy>(options));
  loss.reduction = options.reduction;
  return loss;
}

}  // namespace headrace
