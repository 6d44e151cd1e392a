#include "headrace/train/fit/progress.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "headrace/devices/base/text.h"

namespace headrace {
namespace {

constexpr const char* kClearLine = "\r\033[K";

std::string duration(double seconds) {
  if (seconds < 10) return fmt::format("{:.1f}s", seconds);
  if (seconds < 60) return fmt::format("{:.0f}s", seconds);
  const auto whole = static_cast<long>(seconds + 0.5);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string per_step(double seconds, std::uint64_t steps) {
  const double each = seconds / static_cast<double>(std::max<std::uint64_t>(1, steps));
  if (each < 1e-3) return fmt::format("{:.0f}us/step", each * 1e6);
  if (each < 1) return fmt::format("{:.{}f}ms/step", each * 1e3, each < 0.01 ? 1 : 0);
  return fmt::format("{:.1f}s/step", each);
}

std::string rate(double per_second) {
  return per_second < 10'000 ? fmt::format("{:.0f}/s", per_second) : fmt::format("{:.0f}k/s", per_second / 1000);
}

std::string bar(double share, int width) {
  const int full = std::clamp(static_cast<int>(share * width), 0, width);
  return fmt::format("[{:=<{}}{}{:.<{}}]", "", full, full < width ? ">" : "", "", std::max(0, width - full - 1));
}

// The parts of a step's line, in the order of printing.
enum Part { kSteps, kBar, kRate, kEta, kStall, kCopy, kIdle, kSync, kLoss, kMetrics, kParts };

// In order of importance: the last are dropped first from a short line; the bar is shortened before it is dropped.
constexpr std::array kImportance = {kSteps, kLoss, kEta, kRate, kMetrics, kBar, kStall, kSync, kCopy, kIdle};
constexpr int kLongBar = 20, kShortBar = 8;

// Returns " - accuracy: 0.9230 - top_5: 0.9961", without metrics that are tables.
std::string numbers(const std::vector<MetricValue>& metrics) {
  std::string text;
  for (const MetricValue& metric : metrics) {
    if (metric.is_number()) text += fmt::format(" - {}: {:.4f}", printable(metric.name), metric.number());
  }
  return text;
}

// Returns " sync 12.0% (slowest: worker 3)", the wait of the one that waits longest for the others; empty for a
// process that is alone. The slowest is the one that waits least.
std::string sync_text(const std::vector<StepTimes>& workers) {
  if (workers.empty()) return "";
  const auto [slowest, longest] = std::ranges::minmax_element(workers, {}, &StepTimes::sync_wait_fraction);
  constexpr double kWorthNaming = 0.05;
  const double wait = longest->sync_wait_fraction();
  std::string text = fmt::format(" sync {:.1f}%", wait * 100);
  if (wait - slowest->sync_wait_fraction() > kWorthNaming) {
    text += fmt::format(" (slowest: worker {})", slowest - workers.begin());
  }
  return text;
}

}  // namespace

std::string epoch_line(const EpochReport& report, int columns) {
  constexpr int kMain = 0, kBad = 1, kValidation = 2, kMetric = 3, kTime = 100, kCount = 101, kPace = 102;
  std::vector<LinePart> parts = {{fmt::format("{}/{}", report.steps, report.planned_steps), kCount},
                                 {duration(report.seconds), kTime},
                                 {per_step(report.seconds, report.steps), kPace},
                                 {fmt::format("loss: {:.4f}", report.loss), kMain}};
  const auto add = [&](const char* prefix, const std::vector<MetricValue>& metrics) {
    int rank = kMetric + (*prefix == '\0' ? 1 : 0);  // of a metric, validation's comes first
    for (const MetricValue& metric : metrics) {
      if (!metric.is_number()) continue;
      parts.push_back({fmt::format("{}{}: {:.4f}", prefix, printable(metric.name), metric.number()), rank});
      rank += 2;
    }
  };
  add("", report.metrics);
  if (report.val_loss) parts.push_back({fmt::format("val_loss: {:.4f}", *report.val_loss), kValidation});
  add("val_", report.val_metrics);
  if (report.bad_records > 0) parts.push_back({fmt::format("bad records: {}", report.bad_records), kBad});
  return fit_line(parts, columns);
}

std::string step_line(const StepReport& report, int columns) {
  const double share =
      static_cast<double>(report.step) / static_cast<double>(std::max<std::uint64_t>(1, report.steps));
  std::array<std::string, kParts> parts;
  parts[kSteps] = fmt::format("{}/{}", report.step, report.steps);
  parts[kBar] = fmt::format(" {}", bar(share, kLongBar));
  parts[kRate] = fmt::format(" {}", rate(report.examples_per_second));
  parts[kEta] = fmt::format(" - ETA {}", duration(report.remaining_seconds));
  parts[kStall] = fmt::format(" - input stall {:.1f}%", report.input_stall_fraction * 100);
  parts[kCopy] = fmt::format(" copy {:.1f}%", report.exposed_copy_fraction * 100);
  parts[kIdle] = fmt::format(" idle {:.1f}%", report.device_idle_fraction * 100);
  parts[kSync] = sync_text(report.workers);
  parts[kLoss] = fmt::format(" - loss: {:.4f}", report.loss);
  parts[kMetrics] = numbers(report.metrics);

  std::size_t left = static_cast<std::size_t>(std::max(0, columns - kSpareColumns));
  for (const Part part : kImportance) {
    std::string& text = parts[part];
    if (part == kBar && text.size() > left) text = fmt::format(" {}", bar(share, kShortBar));
    if (text.size() > left) text.clear();
    left -= text.size();
  }
  return fmt::format("{}", fmt::join(parts, ""));
}

Progress::Progress(const FitOptions& options) : output_(options.output), epochs_(options.epochs) {
  const bool terminal = isatty(fileno(output_)) != 0;
  style_ = options.verbose <= 0 ? Style::kNothing : options.verbose == 1 && terminal ? Style::kBar : Style::kLines;
}

void Progress::begin_epoch(int epoch) const {
  if (style_ == Style::kNothing) return;
  say(fmt::format("Epoch {}/{}\n", epoch + 1, epochs_));
}

void Progress::step(const StepReport& report) {
  if (style_ != Style::kBar) return;
  say(kClearLine + step_line(report, terminal_columns(output_)));
  open_ = true;
}

void Progress::end_epoch(const EpochReport& report) {
  if (style_ == Style::kNothing) return;
  say((style_ == Style::kBar ? kClearLine : "") + epoch_line(report, line_columns(output_)) + "\n");
  open_ = false;
}

void Progress::leave_line() noexcept {
  if (!open_) return;
  say("\n");
  open_ = false;
}

void Progress::say(const std::string& text) const noexcept {
  std::fwrite(text.data(), 1, text.size(), output_);
  std::fflush(output_);
}

}  // namespace headrace
