#include "headrace/tools/output/metric_lines.h"

#include <fmt/format.h>

namespace headrace::tools {

void add_metrics(nlohmann::ordered_json& line, const std::string& prefix,
                 const std::vector<MetricValue>& metrics) {
  for (const MetricValue& metric : metrics) {
    if (metric.is_number()) {
      line[prefix + metric.name] = metric.number();
    } else {
      line[prefix + metric.name] = metric.values;
    }
  }
}

std::string metric_text(const std::vector<MetricValue>& metrics) {
  std::string text;
  for (const MetricValue& metric : metrics) {
    if (metric.is_number()) text += fmt::format(" - {}: {:.4f}", metric.name, metric.number());
  }
  return text;
}

}  // namespace headrace::tools
