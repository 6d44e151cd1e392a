// Computes the share of examples whose label is among the largest results or, of labels by themselves, is
// predicted.
#include "headrace/devices/base/error.h"
#include "headrace/train/metrics.h"
#include "headrace/train/objectives/losses/result_checks.h"

namespace headrace {
namespace {

class ShareOfHits : public MetricFunction {
 public:
  explicit ShareOfHits(std::string name) : name_(std::move(name)) {}

  std::string name() const override { return name_; }
  ResultForm form() const override { return ResultForm::kOrder; }
  Better better() const override { return Better::kHigher; }
  std::optional<Attributes> attributes() const override { return Attributes(); }
  bool takes_weights() const override { return true; }
  void check_labels(const ResultInfo& result, const Field& labels) const override {
    check_class_labels(name_, result, labels);
  }

 private:
  std::string name_;
};

class TopShare final : public ShareOfHits {
 public:
  explicit TopShare(int k) : ShareOfHits("top_" + std::to_string(k)), k_(k) {}

  std::string kind() const override { return "top_k"; }
  std::optional<Attributes> attributes() const override { return attributes_of(TopKOptions{.k = k_}); }

  void check_result(const ResultInfo& result) const override {
    check_task(name(), result, {Task::kCategorical});
    check_several_classes(name(), result);
    if (k_ <= result.shape.elements()) return;
    throw ConfigError(name() + " is asked for, but " + result.layer + " gives " + result.shape.to_string());
  }
  void submit(const MetricCall& call) const override {
    call.kernels.count_top(call.stream, {call.result, call.labels, k_, {call.scalars, call.weights}, call.sums});
  }
  MetricValue value(const MetricTotals& totals) const override {
    return {.values = {totals.mean(static_cast<double>(totals.sums.correct))}};
  }

 private:
  int k_;
};

class Accuracy final : public ShareOfHits {
 public:
  Accuracy(std::string name, bool categorical) : ShareOfHits(std::move(name)), categorical_(categorical) {}

  void check_result(const ResultInfo& result) const override {
    if (!categorical_) {
      check_task(name(), result, {Task::kBinary, Task::kMultiLabel});
      return;
    }
    const ResultTask of = check_task(name(), result, {Task::kCategorical, Task::kBinary, Task::kMultiLabel});
    if (of.task == Task::kCategorical) check_several_classes(name(), result);
  }
  bool is_accuracy() const override { return categorical_; }

  // Labels by themselves are counted as a loss that is 1 for each that is right.
  void submit(const MetricCall& call) const override {
    const ExampleRows rows(call.scalars, call.weights);
    if (call.task.task == Task::kCategorical) {
      return call.kernels.count_top(call.stream, {call.result, call.labels, 1, rows, call.sums});
    }
    const ElementLoss matches =
        call.task.from_logits ? ElementLoss::kMatchesOfLogits : ElementLoss::kMatchesOfProbabilities;
    call.kernels.element_loss(call.stream, {matches, call.result, call.labels, {}, 0, rows, call.sums});
  }
  MetricValue value(const MetricTotals& totals) const override {
    if (totals.result.task->task == Task::kCategorical) {
      return {.values = {totals.mean(static_cast<double>(totals.sums.correct))}};
    }
    return {.values = {totals.mean(totals.sums.loss) / static_cast<double>(totals.result.shape.elements())}};
  }

 private:
  bool categorical_;  // or else of labels by themselves alone
};

}  // namespace

Metric accuracy() { return std::make_shared<Accuracy>("accuracy", true); }
Metric binary_accuracy() { return std::make_shared<Accuracy>("binary_accuracy", false); }

Metric top_k(int k) {
  if (k < 1) throw ConfigError("top_k(" + std::to_string(k) + "): k must be at least 1");
  return std::make_shared<TopShare>(k);
}

double reported_accuracy(const MetricSums& sums, const std::vector<MetricValue>& values) {
  const MetricValue* counted = find_metric(values, "accuracy");
  return counted != nullptr && counted->is_number() ? counted->number() : mean_accuracy(sums);
}

}  // namespace headrace
