// Metrics in the output of commands.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "headrace/train/metrics.h"

namespace headrace::tools {

// Adds one number per metric; a table is a list of numbers, row by row.
void add_metrics(nlohmann::ordered_json& line, const std::string& prefix, const std::vector<MetricValue>& metrics);

// Returns " - accuracy: 0.9230 - top_5: 0.9961", without tables.
std::string metric_text(const std::vector<MetricValue>& metrics);

}  // namespace headrace::tools
