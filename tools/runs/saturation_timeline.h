// Reports on the input of a training: the engine's statistics over epochs, and the timeline of saturation.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/stats.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/train/callbacks.h"

namespace headrace::tools {

// The input engine's statistics for a training, summed over its epochs.

// Sums FitControl::input_stats(). Restarts if a stage's number of threads changes, so that occupancies and rates
// are those of the engine as it runs at the end.
class InputStatistics {
 public:
  // Sets the statistics of the current epoch, replacing the previous ones.
  void note(const LoaderStats& epoch) { present_ = epoch; }
  // Ends the epoch.
  void end_epoch(const LoaderStats& epoch);

  // Returns null if nothing was delivered; else the counts, with stage_line() of each stage under "stages" and
  // verdict_line() under "verdict".
  nlohmann::ordered_json to_json() const;

 private:
  LoaderStats done_ = {};  // the epochs that are over
  LoaderStats present_ = {};
};

// The devices' utilisation during a training: lines of JSON, about one per second.

// Returns the seconds that one sample covers `elapsed` seconds after the start: one, and more from 500 s on. A day
// has about 3,100 samples, a year 6,100.
double sample_seconds(double elapsed);

// Each line covers the time from its "begin_seconds" to its "end_seconds" since the training began: the work done
// in it, and the shares of the devices' time in which they waited. Only validations at least as long as a sample
// are left out, as gaps. A line that cannot be written ends the timeline with a warning, not the training.
class SaturationTimeline {
 public:
  explicit SaturationTimeline(const std::filesystem::path& file) : lines_(std::in_place, file.string()) {}

  // Begins a training; `number` counts the trainings of this process, from 1.
  void begin_training(int number);
  void step(const StepReport& report);
  void end_epoch(const EpochReport& report);
  // Writes the line of the remaining time. Called after the last training, even if it failed.
  void finish();

 private:
  // Work of an epoch so far, or of a part of it; the times are sums over replicas.
  struct Work {
    double examples = 0, seconds = 0;
    StepTimes times = {};

    void add(const Work& now, const Work& before);
  };

  static Work work_of(double rate, double seconds, const std::vector<StepTimes>& local_replicas);
  void take(const Work& epoch, double until, int number, std::uint64_t step);
  void write(double until);

  std::optional<JsonLines> lines_;
  Stopwatch clock_;
  int training_ = 0;
  Work seen_;     // of the present epoch
  Work pending_;  // since the last line
  double begin_ = 0;
  int epoch_ = 0;
  std::uint64_t step_ = 0;
};

}  // namespace headrace::tools
