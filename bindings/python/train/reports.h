// The values of metrics, as Python sees them.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "headrace/train/metrics.h"

namespace headrace::python {

// A number, or a NumPy array of float64 of the metric's shape.
nanobind::object value_of_metric(const MetricValue& metric);
// By their names.
nanobind::dict values_of_metrics(const std::vector<MetricValue>& metrics);

}  // namespace headrace::python
