#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/train/metrics.h"

namespace headrace {

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
