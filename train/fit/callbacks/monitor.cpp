#include "headrace/train/fit/callbacks/monitor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/step/objective.h"

namespace headrace {

std::vector<HistoryList> history_lists(const Model& model, bool validates, bool norms) {
  const CompileOptions& compiled = model.state().require_compiled("a fit");
  const std::vector<ReportedValue> reported = reported_values(model.graph(), compiled.loss, compiled.metrics);
  std::vector<HistoryList> lists;
  for (const std::string prefix : {"", "val_"}) {
    for (const ReportedValue& value : reported) {
      if (value.is_number && (prefix.empty() || validates)) lists.push_back({prefix + value.name, value.better});
    }
  }
  lists.insert(lists.end(), {{"steps"},
                             {"seconds", Better::kLower},
                             {"examples_per_second", Better::kHigher},
                             {"input_stall_fraction", Better::kLower},
                             {"exposed_copy_fraction", Better::kLower},
                             {"device_idle_fraction", Better::kLower},
                             {"learning_rate"}});
  if (norms) lists.push_back({"gradient_norm"});
  std::set<std::string> names;
  for (const HistoryList& list : lists) {
    if (names.insert(list.name).second) continue;
    throw ConfigError(fmt::format("a history would have two lists called '{}'", list.name),
                      "give the metric another name");
  }
  return lists;
}

Monitor::Monitor(std::string who, std::string name, std::string option, Better mode, double min_delta)
    : who_(std::move(who)),
      name_(std::move(name)),
      option_(std::move(option)),
      better_(mode),
      min_delta_(min_delta) {
  if (min_delta >= 0) return;
  throw ConfigError(fmt::format("{}: min_delta is {}", who_, min_delta),
                    "it is 0 or more; the mode says which way");
}

void Monitor::begin(const std::vector<HistoryList>& lists) {
  const auto found = std::ranges::find(lists, name_, &HistoryList::name);
  if (found == lists.end()) {
    std::vector<std::string> names;
    for (const HistoryList& list : lists) names.push_back(list.name);
    const bool validated = std::ranges::find(lists, "val_loss", &HistoryList::name) != lists.end();
    throw ConfigError(
        fmt::format("{} watches '{}', which the history of this fit does not have", who_, name_),
        fmt::format("{} {}",
                    name_.starts_with("val_") && !validated ? "fit with a validation, or watch one of" : "it has",
                    fmt::join(names, ", ")));
  }
  if (better_ == Better::kAuto) better_ = found->better;
  if (better_ != Better::kAuto) return;
  throw ConfigError(
      fmt::format("{} watches '{}', and nothing says whether higher or lower values of it are better", who_,
                  name_),
      joined({advice("say {}", named(option_, "max")), named(option_, "min"),
              advice("let the metric say it by {}", named("HostMetricOptions::better"))}));
}

std::optional<double> Monitor::value(const EpochReport& report) const {
  const auto values = epoch_values(report);
  const auto found = std::ranges::find(values, name_, &std::pair<std::string, double>::first);
  if (found != values.end()) return found->second;
  if (report.steps < report.planned_steps) return std::nullopt;
  throw ConfigError(fmt::format("{} watches '{}', whose value is not one number", who_, name_),
                    "watch a metric that has one value");
}

bool Monitor::improves(double value) {
  if (!std::isfinite(value)) return false;
  HEADRACE_CHECK(better_ != Better::kAuto, "a monitor was not begun");
  const double margin =
      better_ == Better::kHigher ? value - best.value_or(-HUGE_VAL) : best.value_or(HUGE_VAL) - value;
  if (best && !(margin > min_delta_)) return false;
  best = value;
  return true;
}

}  // namespace headrace
