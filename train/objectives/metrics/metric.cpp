#include <algorithm>

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

const MetricValue* find_metric(const std::vector<MetricValue>& values, const std::string& name) {
  const auto found = std::ranges::find(values, name, &MetricValue::name);
  return found == values.end() ? nullptr : &*found;
}

}  // namespace headrace
