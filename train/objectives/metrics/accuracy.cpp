// Computes the share of examples whose label is among the largest results.
#include "headrace/devices/base/error.h"
#include "headrace/train/metrics.h"
#include "headrace/train/objectives/losses/result_checks.h"

namespace headrace {
namespace {

class TopShare final : public MetricFunction {
 public:
  TopShare(std::string name, int k) : name_(std::move(name)), k_(k) {}

  std::string name() const override { return name_; }
  void check_result(const ResultInfo& result) const override {
    check_classes(name_, result);
    if (k_ <= result.shape.elements()) return;
    throw ConfigError(name_ + " is asked for, but " + result.layer + " gives " + result.shape.to_string());
  }
  void check_labels(const ResultInfo& result, const Field& labels) const override {
    check_class_labels(name_, result, labels);
  }
  ResultForm form() const override { return ResultForm::kOrder; }
  std::string options_json() const override { return "{}"; }  // the name says k
  bool is_accuracy() const override { return k_ == 1; }
  bool takes_weights() const override { return true; }

  void submit(const MetricCall& call) const override {
    call.kernels.count_top(call.stream, call.result, call.labels, k_, {call.scalars, call.weights}, call.sums);
  }
  MetricValue value(const MetricTotals& totals) const override {
    return {.values = {totals.mean(static_cast<double>(totals.sums.correct))}};
  }

 private:
  std::string name_;
  int k_;
};

}  // namespace

Metric accuracy() { return std::make_shared<TopShare>("accuracy", 1); }

Metric top_k(int k) {
  if (k < 1) throw ConfigError("top_k(" + std::to_string(k) + "): k must be at least 1");
  return std::make_shared<TopShare>("top_" + std::to_string(k), k);
}

}  // namespace headrace
