#include "headrace/train/fit/callbacks/monitor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "headrace/devices/base/error.h"

namespace headrace {

Monitor::Monitor(std::string who, std::string name, Better mode, double min_delta)
    : who_(std::move(who)), name_(std::move(name)), higher_(higher_is_better(name_, mode)), min_delta_(min_delta) {
  if (min_delta >= 0) return;
  throw ConfigError(fmt::format("{}: min_delta is {}", who_, min_delta),
                    "it is 0 or more; the mode says which way");
}

std::optional<double> Monitor::value(const EpochReport& report) const {
  const auto values = epoch_values(report);
  const auto found = std::ranges::find(values, name_, &std::pair<std::string, double>::first);
  if (found != values.end()) return found->second;
  if (report.steps < report.planned_steps) return std::nullopt;
  std::vector<std::string> names;
  for (const auto& [name, value] : values) names.push_back(name);
  const bool validation = name_.starts_with("val_") && !report.val_loss;
  throw ConfigError(fmt::format("{} watches '{}', which an epoch does not have", who_, name_),
                    fmt::format("{} {}", validation ? "fit with a validation, or watch one of" : "it has",
                                fmt::join(names, ", ")));
}

bool Monitor::improves(double value) {
  if (!std::isfinite(value)) return false;
  const double margin = higher_ ? value - best.value_or(-HUGE_VAL) : best.value_or(HUGE_VAL) - value;
  if (best && !(margin > min_delta_)) return false;
  best = value;
  return true;
}

}  // namespace headrace
