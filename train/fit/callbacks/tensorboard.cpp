#include <fmt/format.h>
#include <tensorboard_event.pb.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/byte_io.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/train/fit/callbacks/monitor.h"
#include "headrace/train/model.h"

namespace headrace {
namespace {

constexpr int kBuckets = 30;

}  // namespace

events::Histogram histogram_of(std::span<const float> values) {
  std::vector<double> finite;
  for (const float value : values) {
    if (std::isfinite(value)) finite.push_back(value);
  }
  events::Histogram histogram;
  if (finite.empty()) return histogram;
  const auto [min, max] = std::ranges::minmax(finite);
  histogram.set_min(min);
  histogram.set_max(max);
  histogram.set_num(static_cast<double>(finite.size()));
  const int buckets = min < max ? kBuckets : 1;
  std::vector<double> counts(static_cast<std::size_t>(buckets));
  double sum = 0, squares = 0;
  for (const double value : finite) {
    sum += value;
    squares += value * value;
    const double share = min < max ? (value - min) / (max - min) : 0;
    ++counts[static_cast<std::size_t>(std::min(buckets - 1, static_cast<int>(share * buckets)))];
  }
  histogram.set_sum(sum);
  histogram.set_sum_squares(squares);
  for (int i = 0; i < buckets; ++i) {
    histogram.add_bucket_limit(i + 1 == buckets ? max : min + (max - min) * (i + 1) / buckets);
    histogram.add_bucket(counts[static_cast<std::size_t>(i)]);
  }
  return histogram;
}

// Writes a fit's reports for TensorBoard.

namespace {

// Each event is in the file when add() returns. Throws DataError naming the path if it cannot be written.
class EventFile {
 public:
  // Creates the folder and a new file in it for events after `step`: TensorBoard no longer shows later steps from
  // the folder's other files.
  EventFile(const std::filesystem::path& folder, std::uint64_t step);

  void add(std::uint64_t step, events::Summary summary);

  const std::filesystem::path& path() const noexcept { return file_.path(); }

 private:
  AppendFile file_;
};

constexpr int kSessionStart = 1;

double wall_time() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Names the file like TensorFlow: TensorBoard reads a folder's files in the order of their names.
std::filesystem::path new_file(const std::filesystem::path& folder) {
  static std::atomic<int> made{0};
  make_folders(folder);
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  return folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}", static_cast<std::uint64_t>(wall_time()),
                              host.data(), getpid(), made++);
}

// Returns length and payload, each with its checksum.
std::vector<std::byte> framed(const events::Event& event) {
  const std::string payload = event.SerializeAsString();
  const auto bytes = std::as_bytes(std::span(payload));
  ByteWriter record;
  record.u64(payload.size());
  record.u32(mask_crc32c(crc32c(record.bytes())));
  record.raw(bytes).u32(mask_crc32c(crc32c(bytes)));
  return {record.bytes().begin(), record.bytes().end()};
}

events::Event event_at(std::uint64_t step) {
  events::Event event;
  event.set_wall_time(wall_time());
  event.set_step(static_cast<std::int64_t>(step));
  return event;
}

std::vector<std::byte> version_record() {
  events::Event event = event_at(0);
  event.set_file_version("brain.Event:2");
  return framed(event);
}

EventFile::EventFile(const std::filesystem::path& folder, std::uint64_t step)
    : file_(new_file(folder), version_record()) {
  events::Event start = event_at(step + 1);
  start.mutable_session_log()->set_status(kSessionStart);
  file_.append(framed(start));
}

void EventFile::add(std::uint64_t step, events::Summary summary) {
  events::Event event = event_at(step);
  *event.mutable_summary() = std::move(summary);
  file_.append(framed(event));
}

void add_number(events::Summary& summary, const std::string& tag, double value) {
  events::Summary::Value* entry = summary.add_value();
  entry->set_tag(tag);
  entry->set_simple_value(static_cast<float>(value));
}

double milliseconds(std::int64_t ns, std::uint64_t steps) {
  return steps > 0 ? 1e-6 * static_cast<double>(ns) / static_cast<double>(steps) : 0;
}

void add_learning_rates(events::Summary& summary, const std::vector<double>& rates) {
  for (std::size_t group = 0; group < rates.size(); ++group) {
    add_number(summary, fmt::format("learning_rate/group_{}", group), rates[group]);
  }
}

void add_gradient_norms(events::Summary& summary, const std::optional<GradientNorms>& norms) {
  if (!norms) return;
  add_number(summary, "gradient_norm/all", norms->all);
  for (const auto& [variable, norm] : norms->by_variable) add_number(summary, "gradient_norm/" + variable, norm);
}

// `of`: "replica" or "worker".
void add_times(events::Summary& summary, const char* of, const std::vector<StepTimes>& all, std::uint64_t steps) {
  for (std::size_t r = 0; r < all.size(); ++r) {
    const StepTimes& times = all[r];
    const auto add = [&](const char* what, std::int64_t ns) {
      add_number(summary, fmt::format("{}_{}/{}", of, r, what), milliseconds(ns, steps));
    };
    add("step_ms", times.elapsed_ns);
    add("input_stall_ms", times.input_stall_ns);
    add("exposed_copy_ms", times.exposed_copy_ns);
    add("device_idle_ms", times.idle_ns);
    add("sync_wait_ms", times.sync_wait_ns);
    if (times.sums_ns > 0) add("sums_ms", times.sums_ns);
  }
}

// Adds values from the report of a step or epoch, after `steps` steps of its epoch.
void add_groups(events::Summary& summary, const auto& report, std::uint64_t steps) {
  add_learning_rates(summary, report.learning_rates);
  add_gradient_norms(summary, report.gradient_norms);
  add_times(summary, "replica", report.local_replicas, steps);
  add_times(summary, "worker", report.workers, steps);
}

class TensorBoard {
 public:
  TensorBoard(std::filesystem::path folder, const TensorBoardOptions& options)
      : folder_(std::move(folder)), options_(options) {
    if (options.histograms_every_epochs >= 0) return;
    throw ConfigError(fmt::format("tensorboard: histograms every {} epochs", options.histograms_every_epochs),
                      "give 1 or more, or 0 for none");
  }

  void begin(const FitControl& control) { file_.emplace(folder_, control.model().global_step()); }
  void begin_epoch() { since_ = {}; }

  void step(const StepReport& report) {
    events::Summary summary;
    add_number(summary, "step/loss", report.loss);
    for (const MetricValue& metric : report.metrics) {
      if (metric.is_number()) add_number(summary, "step/" + metric.name, metric.number());
    }
    const auto steps = static_cast<double>(report.step - since_.step);
    add_number(summary, "step/step_ms", 1e3 * (report.seconds - since_.seconds) / steps);
    add_number(summary, "step/examples_per_second", report.examples_per_second);
    add_number(summary, "step/input_stall_fraction", report.input_stall_fraction);
    add_number(summary, "step/exposed_copy_fraction", report.exposed_copy_fraction);
    add_number(summary, "step/device_idle_fraction", report.device_idle_fraction);
    add_groups(summary, report, report.step);
    file_->add(report.global_step, std::move(summary));
    since_ = {.step = report.step, .seconds = report.seconds};
  }

  void end_epoch(const EpochReport& report, const FitControl& control) {
    events::Summary summary;
    for (const auto& [name, value] : epoch_values(report)) {
      // Values with their own group below.
      if (name != "learning_rate" && name != "gradient_norm") add_number(summary, name, value);
    }
    std::int64_t elapsed_ns = 0;
    for (const StepTimes& times : report.local_replicas) elapsed_ns += times.elapsed_ns;
    if (!report.local_replicas.empty()) {
      add_number(summary, "step_ms", milliseconds(elapsed_ns, report.steps * report.local_replicas.size()));
    }
    add_number(summary, "host_us_per_step", report.host_us_per_step);
    add_number(summary, "epoch", report.epoch + 1);
    if (since_.step != report.steps) add_groups(summary, report, report.steps);  // else the step's report had them
    const int every = options_.histograms_every_epochs;
    if (every > 0 && (report.epoch + 1) % every == 0) add_histograms(summary, control.model());
    file_->add(report.global_step, std::move(summary));
  }

  void end() { file_.reset(); }

 private:
  static void add_histograms(events::Summary& summary, const Model& model) {
    for (const std::string& name : model.variable_names()) {
      events::Summary::Value* entry = summary.add_value();
      entry->set_tag(name);
      *entry->mutable_histo() = histogram_of(model.read_variable(name));
    }
  }

  std::filesystem::path folder_;
  TensorBoardOptions options_;
  std::optional<EventFile> file_;  // while a fit runs
  struct {
    std::uint64_t step = 0;
    double seconds = 0;
  } since_;  // the last report of a step in this epoch
};

}  // namespace

Callback tensorboard(const std::filesystem::path& folder, const TensorBoardOptions& options) {
  const auto self = std::make_shared<TensorBoard>(folder, options);
  Callback callback{
      .name = "tensorboard",
      .on_train_begin = [self](FitControl& control) { self->begin(control); },
      .on_epoch_begin = [self](int, FitControl&) { self->begin_epoch(); },
      .on_epoch_end = [self](const EpochReport& report, FitControl& control) { self->end_epoch(report, control); },
      .on_train_end = [self](FitControl&) { self->end(); }};
  if (options.every_steps > 0) {
    callback.every_steps = options.every_steps;
    callback.on_step = [self](const StepReport& report, FitControl&) { self->step(report); };
  }
  return on_chief(std::move(callback));
}

}  // namespace headrace
