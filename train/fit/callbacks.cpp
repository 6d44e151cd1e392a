#include "headrace/train/callbacks.h"

#include <fmt/format.h>

#include <cmath>

#include "headrace/devices/base/error.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"

namespace headrace {

void FitControl::set_learning_rate_scale(double scale) {
  if (!std::isfinite(scale) || scale < 0) {
    throw ConfigError(fmt::format("learning rates cannot be multiplied by {}", scale), "give 0 or more");
  }
  model_->state().learning_rate_scale = scale;
}

double FitControl::learning_rate_scale() const noexcept { return model_->state().learning_rate_scale; }

std::vector<double> FitControl::learning_rates() const { return model_->state().learning_rates(); }

std::vector<std::pair<std::string, double>> epoch_values(const EpochReport& report) {
  std::vector<std::pair<std::string, double>> values;
  const auto append = [&](const std::string& prefix, const std::vector<MetricValue>& metrics) {
    for (const MetricValue& metric : metrics) {
      if (metric.is_number()) values.emplace_back(prefix + metric.name, metric.number());
    }
  };
  values.emplace_back("loss", report.loss);
  append("", report.metrics);
  if (report.val_loss) values.emplace_back("val_loss", *report.val_loss);
  append("val_", report.val_metrics);
  values.emplace_back("steps", static_cast<double>(report.steps));
  values.emplace_back("seconds", report.seconds);
  values.emplace_back("examples_per_second", report.examples_per_second);
  values.emplace_back("input_stall_fraction", report.input_stall_fraction);
  values.emplace_back("exposed_copy_fraction", report.exposed_copy_fraction);
  values.emplace_back("device_idle_fraction", report.device_idle_fraction);
  if (!report.learning_rates.empty()) values.emplace_back("learning_rate", report.learning_rates.front());
  if (report.gradient_norms) values.emplace_back("gradient_norm", report.gradient_norms->all);
  return values;
}

}  // namespace headrace
