#include "headrace/train/fit/callback_list.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/strategy.h"

namespace headrace {
namespace {

bool due(const Callback& callback, std::uint64_t global_step) {
  return callback.on_step && callback.every_steps > 0 && global_step % callback.every_steps == 0;
}

std::vector<std::string> state_names(const std::vector<Callback>& callbacks) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const Callback& callback : callbacks) {
    names.emplace_back();
    if (!callback.save && !callback.restore) continue;
    if (!callback.save || !callback.restore || callback.name.empty()) {
      throw ConfigError(
          fmt::format("the callback '{}' has save() or restore() but not all it needs", callback.name),
          "give it both and a name, or neither");
    }
    std::string name = callback.name;
    for (int use = 2; !taken.insert(name).second; ++use) name = fmt::format("{}_{}", callback.name, use);
    names.back() = std::move(name);
  }
  return names;
}

}  // namespace

CallbackList::CallbackList(const std::vector<Callback>& callbacks, FitControl& control)
    : callbacks_(callbacks), control_(control), names_(state_names(callbacks)) {}

void CallbackList::begin_train() const {
  for (const Callback& callback : callbacks_) {
    if (callback.on_train_begin) callback.on_train_begin(control_);
  }
}

void CallbackList::begin_epoch(int epoch) const {
  for (const Callback& callback : callbacks_) {
    if (callback.on_epoch_begin) callback.on_epoch_begin(epoch, control_);
  }
}

bool CallbackList::wants(std::uint64_t global_step) const noexcept {
  for (const Callback& callback : callbacks_) {
    if (due(callback, global_step)) return true;
  }
  return false;
}

void CallbackList::exact_step(const StepReport& report) const {
  for (const Callback& callback : callbacks_) {
    if (due(callback, report.global_step)) callback.on_step(report, control_);
  }
}

void CallbackList::step(const StepReport& report) const {
  for (const Callback& callback : callbacks_) {
    if (callback.on_step && callback.every_steps == 0) callback.on_step(report, control_);
  }
}

void CallbackList::end_epoch(const EpochReport& report) const {
  for (const Callback& callback : callbacks_) {
    if (callback.on_epoch_end) callback.on_epoch_end(report, control_);
  }
}

void CallbackList::end_train() const {
  for (const Callback& callback : callbacks_) {
    if (callback.on_train_end) callback.on_train_end(control_);
  }
}

std::string CallbackList::save() const {
  nlohmann::json states = nlohmann::json::object();
  for (std::size_t i = 0; i < callbacks_.size(); ++i) {
    if (!names_[i].empty()) states[names_[i]] = callbacks_[i].save();
  }
  return states.dump();
}

void CallbackList::restore(const std::string& states) const {
  const nlohmann::json saved = nlohmann::json::parse(states, nullptr, false);
  if (!saved.is_object()) throw ConfigError("the callbacks' state is no JSON object", "take it from save()");
  for (std::size_t i = 0; i < callbacks_.size(); ++i) {
    const auto mine = saved.find(names_[i]);
    if (names_[i].empty() || mine == saved.end()) continue;
    if (!mine->is_string()) throw ConfigError(fmt::format("the state of the callback '{}' is no text", names_[i]));
    callbacks_[i].restore(mine->get<std::string>());
  }
}

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
