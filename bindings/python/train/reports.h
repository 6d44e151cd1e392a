// What a fit reports, as Python sees it.
#pragma once

#include <nanobind/nanobind.h>

#include <vector>

#include "headrace/train/metrics.h"

namespace headrace::python {

// StepReport and EpochReport.
void bind_reports(nanobind::module_& module);

// A number, or a NumPy array of float64 of the metric's shape.
nanobind::object value_of_metric(const MetricValue& metric);
// By their names.
nanobind::dict values_of_metrics(const std::vector<MetricValue>& metrics);

}  // namespace headrace::python
