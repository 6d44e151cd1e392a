#include "headrace/train/metrics.h"
#include "headrace/train/objectives/losses/result_checks.h"
#include "headrace/train/objectives/metrics/class_averages.h"

namespace headrace {
namespace {

class ConfusionMatrix final : public MetricFunction {
 public:
  std::string name() const override { return "confusion_matrix"; }
  void check_result(const ResultInfo& result) const override {
    check_classes(name(), result);
    check_task(name(), result, {Task::kCategorical, Task::kBinary});
  }
  void check_labels(const ResultInfo& result, const Field& labels) const override {
    check_class_labels(name(), result, labels);
  }
  ResultForm form() const override { return ResultForm::kOrder; }
  bool is_number(const ResultInfo&) const override { return false; }
  std::optional<Shape> table(const ResultInfo& result) const override {
    const std::int64_t classes = result.task->task == Task::kBinary ? 2 : result.shape.back();
    return Shape{classes, classes};
  }
  std::string options_json() const override { return "{}"; }

  void submit(const MetricCall& call) const override {
    if (call.task.task == Task::kBinary) return count_scores(call, {.count = 2});
    call.kernels.count_confusions(call.stream, call.result, call.labels, call.scalars, call.table);
  }
  MetricValue value(const MetricTotals& totals) const override {
    std::vector<double> counts(totals.table.begin(), totals.table.end());
    // Counted by prediction, then by label.
    if (totals.result.task->task == Task::kBinary) std::swap(counts.at(1), counts.at(2));
    const Shape shape = *table(totals.result);
    return {.values = std::move(counts), .shape = shape};
  }
};

}  // namespace

Metric confusion_matrix() { return std::make_shared<ConfusionMatrix>(); }

}  // namespace headrace
