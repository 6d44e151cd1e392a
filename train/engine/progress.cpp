#include "headrace/train/engine/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

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

std::string bar(double share) {
  constexpr int kWidth = 20;
  const int full = std::clamp(static_cast<int>(share * kWidth), 0, kWidth);
  return fmt::format("[{:=<{}}{}{:.<{}}]", "", full, full < kWidth ? ">" : "", "", std::max(0, kWidth - full - 1));
}

}  // namespace

std::string epoch_line(const EpochReport& report, bool accuracy) {
  std::string line = fmt::format("{0}/{0} - {1} - {2} - loss: {3:.4f}", report.steps, duration(report.seconds),
                                 per_step(report.seconds, report.steps), report.loss);
  if (accuracy) line += fmt::format(" - accuracy: {:.4f}", report.accuracy);
  if (report.val_loss) line += fmt::format(" - val_loss: {:.4f}", *report.val_loss);
  if (accuracy && report.val_accuracy) line += fmt::format(" - val_accuracy: {:.4f}", *report.val_accuracy);
  if (report.bad_records > 0) line += fmt::format(" - bad records: {}", report.bad_records);
  return line;
}

std::string step_line(const StepReport& report, bool accuracy) {
  const double share =
      static_cast<double>(report.step) / static_cast<double>(std::max<std::uint64_t>(1, report.steps));
  std::string line =
      fmt::format("{}/{} {} {} - ETA {} - input stall {:.1f}% copy {:.1f}% idle {:.1f}% - loss: {:.4f}",
                  report.step, report.steps, bar(share), rate(report.examples_per_second),
                  duration(report.remaining_seconds), report.input_stall_fraction * 100,
                  report.exposed_copy_fraction * 100, report.device_idle_fraction * 100, report.loss);
  if (accuracy) line += fmt::format(" - accuracy: {:.4f}", report.accuracy);
  return line;
}

Progress::Progress(const FitOptions& options, const std::vector<Metric>& metrics)
    : output_(options.output),
      epochs_(options.epochs),
      accuracy_(std::ranges::count(metrics, Metric::kAccuracy) > 0) {
  const bool terminal = isatty(fileno(output_)) != 0;
  style_ = options.verbose <= 0 ? Style::kNothing : options.verbose == 1 && terminal ? Style::kBar : Style::kLines;
}

void Progress::begin_epoch(int epoch) const {
  if (style_ == Style::kNothing) return;
  fmt::print(output_, "Epoch {}/{}\n", epoch + 1, epochs_);
  std::fflush(output_);
}

void Progress::step(const StepReport& report) const {
  if (style_ != Style::kBar) return;
  fmt::print(output_, "{}{}", kClearLine, step_line(report, accuracy_));
  std::fflush(output_);
}

void Progress::end_epoch(const EpochReport& report) const {
  if (style_ == Style::kNothing) return;
  fmt::print(output_, "{}{}\n", style_ == Style::kBar ? kClearLine : "", epoch_line(report, accuracy_));
  std::fflush(output_);
}

}  // namespace headrace
