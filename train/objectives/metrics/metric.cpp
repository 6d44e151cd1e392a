// Metrics of any kind, and the mean of a loss as one.
#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/train/metrics.h"

namespace headrace {
namespace {

class LossMetric final : public MetricFunction {
 public:
  explicit LossMetric(std::shared_ptr<const LossFunction> loss) : loss_(std::move(loss)) {}

  std::string name() const override { return loss_->name(); }
  void check_result(const ResultInfo& result) const override { loss_->check_result(result); }
  void check_labels(const ResultInfo& result, const Field& labels) const override {
    loss_->check_labels(result, labels);
  }
  ResultForm form() const override { return loss_->form(); }
  Better better() const override { return Better::kLower; }
  ScratchSpec scratch(const TensorView& result, const TensorView& labels) const override {
    return loss_->scratch(result, labels);
  }
  bool takes_weights() const override { return loss_->takes_weights(); }
  std::optional<Attributes> attributes() const override { return loss_->attributes(); }

  void submit(const MetricCall& call) const override {
    loss_->submit({.stream = call.stream,
                   .kernels = call.kernels,
                   .scalars = call.scalars,
                   .result = call.result,
                   .labels = call.labels,
                   .weights = call.weights,
                   .sums = call.sums,
                   .device_scratch = call.device_scratch,
                   .pinned_scratch = call.pinned_scratch});
  }
  MetricValue value(const MetricTotals& totals) const override {
    return {.values = {totals.mean(totals.sums.loss)}};
  }

 private:
  std::shared_ptr<const LossFunction> loss_;
};

}  // namespace

Metric::Metric(const Loss& loss) {
  if (loss.terms.size() != 1 || loss.terms.front().weight != 1.0F) {
    throw ConfigError("a metric is the mean of one loss, without a weight",
                      "name each term as a metric of its own");
  }
  const LossTerm& term = loss.terms.front();
  function = std::make_shared<LossMetric>(term.function);
  label_field = term.label_field;
  result = term.result;
}

ScratchSpec MetricFunction::scratch(const TensorView& /*result*/, const TensorView& /*labels*/) const {
  return {};
}

Metric Metric::of(const std::string& layer) const {
  Metric metric = *this;
  metric.result = layer;
  return metric;
}

Metric Metric::weighted() const {
  if (!function->takes_weights()) {
    throw ConfigError("metric '" + function->name() + "' cannot be weighted: it is not a mean over examples",
                      "weight accuracy(), top_k() or a loss");
  }
  Metric metric = *this;
  metric.is_weighted = true;
  return metric;
}

double MetricTotals::mean(double unweighted) const {
  const double sum = weight ? sums.loss : unweighted, parts = weight.value_or(static_cast<double>(sums.examples));
  return parts != 0 ? sum / parts : 0.0;
}

const MetricValue* find_metric(const std::vector<MetricValue>& values, const std::string& name) {
  const auto found = std::ranges::find(values, name, &MetricValue::name);
  return found == values.end() ? nullptr : &*found;
}

}  // namespace headrace
