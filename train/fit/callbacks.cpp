#include <fmt/format.h>

#include <cmath>
#include <tuple>

#include "headrace/devices/base/error.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/strategy.h"

namespace headrace {

StepTimes& StepTimes::operator+=(const StepTimes& other) noexcept {
  elapsed_ns += other.elapsed_ns;
  input_stall_ns += other.input_stall_ns;
  exposed_copy_ns += other.exposed_copy_ns;
  idle_ns += other.idle_ns;
  sync_wait_ns += other.sync_wait_ns;
  sums_ns += other.sums_ns;
  host_ns += other.host_ns;
  return *this;
}

void FitControl::set_learning_rate_scale(double scale) {
  if (!std::isfinite(scale) || scale < 0) {
    throw ConfigError(fmt::format("learning rates cannot be multiplied by {}", scale), "give 0 or more");
  }
  model_->state().learning_rate_scale = scale;
}

double FitControl::learning_rate_scale() const noexcept { return model_->state().learning_rate_scale; }

std::vector<double> FitControl::learning_rates() const { return model_->state().learning_rates(); }

namespace {

// The last argument is the FitControl.
template <typename... Arguments>
void keep_to_chief(std::function<void(Arguments...)>& function) {
  if (!function) return;
  function = [all = std::move(function)](Arguments... arguments) {
    const FitControl& control = std::get<sizeof...(Arguments) - 1>(std::tie(arguments...));
    if (control.model().strategy().is_chief()) all(arguments...);
  };
}

}  // namespace

Callback on_chief(Callback callback) {
  keep_to_chief(callback.on_train_begin);
  keep_to_chief(callback.on_epoch_begin);
  keep_to_chief(callback.on_step);
  keep_to_chief(callback.on_epoch_end);
  keep_to_chief(callback.on_train_end);
  return callback;
}

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

const std::vector<double>& History::operator[](const std::string& name) const {
  if (const auto found = lists_.find(name); found != lists_.end()) return found->second;
  std::string names;
  for (const auto& [each, list] : lists_) names += (names.empty() ? "" : ", ") + each;
  throw ConfigError("the history has no '" + name + "'", "it has " + (names.empty() ? "nothing" : names));
}

std::size_t History::epochs() const { return lists_.empty() ? 0 : lists_.begin()->second.size(); }

}  // namespace headrace
