#include "headrace/train/metrics.h"
#include "headrace/train/objectives/losses/result_checks.h"

namespace headrace {
namespace {

class ConfusionMatrix final : public MetricFunction {
 public:
  std::string name() const override { return "confusion_matrix"; }
  void check_result(const ResultInfo& result) const override { check_classes(name(), result); }
  void check_labels(const ResultInfo& result, const Field& labels) const override {
    check_class_labels(name(), result, labels);
  }
  ResultForm form() const override { return ResultForm::kOrder; }
  std::optional<Shape> table(const ResultInfo& result) const override {
    return Shape{result.shape.back(), result.shape.back()};
  }
  std::string options_json() const override { return "{}"; }

  void submit(const MetricCall& call) const override {
    call.kernels.count_confusions(call.stream, call.result, call.labels, call.scalars, call.table);
  }
  MetricValue value(const MetricTotals& totals) const override {
    std::int64_t classes = 0;
    while (classes * classes < static_cast<std::int64_t>(totals.table.size())) ++classes;
    return {.values = {totals.table.begin(), totals.table.end()}, .shape = {classes, classes}};
  }
};

}  // namespace

Metric confusion_matrix() { return std::make_shared<ConfusionMatrix>(); }

}  // namespace headrace
