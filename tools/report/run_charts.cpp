#include "headrace/tools/report/run_charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>
#include <string_view>

#include "headrace/tools/report/chart.h"
#include "headrace/tools/report/json_values.h"
#include "headrace/tools/report/number_text.h"
#include "headrace/tools/report/xml_text.h"

namespace headrace::tools {
namespace {

// The keys of an epoch's line besides metrics.
const std::set<std::string> kOtherKeys{"epoch",
                                       "steps",
                                       "planned_steps",
                                       "seconds",
                                       "examples_per_second",
                                       "input_stall_fraction",
                                       "exposed_copy_fraction",
                                       "device_idle_fraction",
                                       "host_us_per_step",
                                       "loss",
                                       "learning_rate",
                                       "learning_rates",
                                       "gradient_norm",
                                       "bad_records"};

struct WaitShare {
  const char *key, *name;
};
constexpr std::array kWaitShares{
    WaitShare{"input_stall_fraction", "input stall"}, WaitShare{"exposed_copy_fraction", "copies"},
    WaitShare{"device_idle_fraction", "idle"}, WaitShare{"sync_wait_fraction", "replicas"}};

std::string figure(const std::string& caption, const std::string& chart) {
  if (chart.empty()) return "";
  return "<figure><figcaption>" + xml_text(caption) + "</figcaption>" + chart + "</figure>\n";
}

Curve curve_over_epochs(const TrainingLines& training, const std::string& key, const std::string& name,
                        int colour) {
  Curve curve{.name = name, .points = {}, .colour = colour};
  bool gap = false;
  for (const nlohmann::json& line : training.epochs) {
    const auto value = number_at(line, key);
    if (value) curve.points.push_back({*number_at(line, "epoch"), *value, !gap});
    gap = !value;
  }
  return curve;
}

std::string epoch_chart(const std::string& caption, const std::string& unit, std::vector<Curve> curves,
                        bool from_zero = false) {
  return figure(caption, draw(Chart{.title = caption + " by epoch",
                                    .x_title = "epoch",
                                    .y_title = unit,
                                    .x = {.whole = true},
                                    .y = {.from_zero = from_zero},
                                    .curves = std::move(curves)}));
}

std::string metric_chart(const TrainingLines& training, const std::string& name) {
  return epoch_chart(
      name + ", training and validation", name == "loss" ? "mean loss of an example" : name,
      {curve_over_epochs(training, name, "train", 0), curve_over_epochs(training, "val_" + name, "val", 1)});
}

// Returns the curve of the optimizer's own rate for group 0, then of each of its groups.
Curve rates_of(const TrainingLines& training, std::size_t group) {
  Curve curve{.name = group == 0 ? std::string("rate") : fmt::format("group {}", group),
              .points = {},
              .colour = static_cast<int>(group)};
  for (const nlohmann::json& line : training.epochs) {
    auto rate = group == 0 ? number_at(line, "learning_rate") : std::nullopt;
    if (line.contains("learning_rates") && line["learning_rates"].is_array() &&
        group < line["learning_rates"].size()) {
      rate = number_of(line["learning_rates"][group]);
    }
    if (rate) curve.points.push_back({*number_at(line, "epoch"), *rate});
  }
  return curve;
}

std::vector<ShareSample> samples_of(const std::vector<nlohmann::json>& timeline) {
  std::vector<ShareSample> samples;
  for (const nlohmann::json& line : timeline) {
    ShareSample sample{
        .begin = *number_at(line, "begin_seconds"), .end = *number_at(line, "end_seconds"), .shares = {}};
    for (const WaitShare& share : kWaitShares) {
      sample.shares.push_back(std::clamp(number_at(line, share.key).value_or(0), 0.0, 1.0));
    }
    samples.push_back(std::move(sample));
  }
  std::ranges::stable_sort(samples, {}, &ShareSample::begin);
  return samples;
}

Curve rate_over_time(const std::vector<nlohmann::json>& timeline) {
  Curve curve{.name = "rate", .points = {}};
  double end = 0;
  for (const nlohmann::json& line : timeline) {
    const auto rate = number_at(line, "examples_per_second");
    const double from = *number_at(line, "begin_seconds"), to = *number_at(line, "end_seconds");
    if (rate) curve.points.push_back({(from + to) / 2, *rate, from <= end});
    end = to;
  }
  std::ranges::stable_sort(curve.points, {}, &CurvePoint::x);
  return curve;
}

}  // namespace

std::vector<std::string> metrics_of(const TrainingLines& training) {
  std::vector<std::string> names;
  for (const nlohmann::json& line : training.epochs) {
    for (const auto& [key, value] : line.items()) {
      const std::string name = key.starts_with("val_") ? key.substr(4) : key;
      const bool known = kOtherKeys.contains(name) || std::ranges::find(names, name) != names.end();
      if (!known && number_of(value)) names.push_back(name);
    }
  }
  return names;
}

std::string draw_curves(const TrainingLines& training) {
  std::string charts = metric_chart(training, "loss");
  for (const std::string& metric : metrics_of(training)) charts += metric_chart(training, metric);
  charts += epoch_chart("training rate", "examples/s",
                        {curve_over_epochs(training, "examples_per_second", "rate", 0)}, /*from_zero=*/true);
  charts += epoch_chart("learning rate after the epoch", "learning rate",
                        {rates_of(training, 0), rates_of(training, 1), rates_of(training, 2)}, /*from_zero=*/true);
  charts += epoch_chart("norm of the last step's gradient", "norm",
                        {curve_over_epochs(training, "gradient_norm", "norm", 0)}, /*from_zero=*/true);
  return charts.empty() ? "" : "<div class=\"charts\">\n" + charts + "</div>\n";
}

std::string standstill_sentence(const std::vector<nlohmann::json>& timeline) {
  static_assert(std::string_view(kWaitShares.front().name) == "input stall");
  double still = 0, stalled = 0, seconds = 0;
  for (const ShareSample& sample : samples_of(timeline)) {
    const double length = sample.end - sample.begin;
    still += length * std::min(1.0, std::accumulate(sample.shares.begin(), sample.shares.end(), 0.0));
    stalled += length * sample.shares.front();
    seconds += length;
  }
  if (seconds <= 0) return "";
  return fmt::format("The devices stood still for {} of the time; input stall is {} of the time.",
                     percent(still / seconds), percent(stalled / seconds));
}

std::string draw_timeline(const std::vector<nlohmann::json>& timeline) {
  if (timeline.empty()) return "";
  Chart waits{.title = "Share of the devices' time in which they stood still",
              .x_title = "seconds of training",
              .y_title = "% of the devices' time",
              .samples = samples_of(timeline)};
  for (const WaitShare& share : kWaitShares) waits.share_names.emplace_back(share.name);
  return "<div class=\"charts\">\n" + figure("devices standing still: why", draw(waits)) +
         figure("training rate over time", draw(Chart{.title = "Examples a second over time",
                                                      .x_title = "seconds of training",
                                                      .y_title = "examples/s",
                                                      .x = {.from_zero = true},
                                                      .y = {.from_zero = true},
                                                      .curves = {rate_over_time(timeline)}})) +
         "</div>\n";
}

}  // namespace headrace::tools
