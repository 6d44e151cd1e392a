// The values of metrics in Python.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "headrace/train/metrics.h"

namespace headrace::python {

// Returns a number, or a NumPy array of float64 of the metric's shape.
nanobind::object value_of_metric(const MetricValue& metric);
// Returns the values by name.
nanobind::dict values_of_metrics(const std::vector<MetricValue>& metrics);

}  // namespace headrace::python
