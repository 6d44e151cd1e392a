// The engine in front of a consumer that only takes batches: its rate, what it is compared with, its first pass;
// the range that a profiler records.
#pragma once

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tools/options/pipeline_options.h"
#include "headrace/tools/output/print.h"
#include "headrace/tools/pipelines/baseline.h"
#include "headrace/train/callbacks.h"

namespace headrace::tools {

// Measures a loader with a consumer that only takes batches.

constexpr double kMinSeconds = 0.01, kMaxSeconds = 86400;         // of --seconds
constexpr std::uint64_t kEndlessEpochs = std::uint64_t{1} << 30;  // for a run that the clock ends

struct MeasuredRunOptions {
  double seconds = 1;
  std::chrono::microseconds consumer{0};  // sleep per global batch, in place of a training step
  int warm_passes = 0;  // passes over the data before the clock starts, which fill caches and index JPEGs
  double max_warm_up_seconds = 10;
};

struct WarmUp {
  bool finished = false;     // the engine has tuned itself and the passes are over
  double batch_seconds = 0;  // mean time between batches; 0: none was taken
};

// Takes and returns every replica's share of the next global batch; returns their examples, std::nullopt at the
// end.
std::optional<std::int64_t> take_batch(Loader& loader, std::chrono::microseconds consumer = {});

// Returns the first batch's examples. Throws Error(kNotFound) if there is none.
std::int64_t take_first_batch(Loader& loader, std::chrono::microseconds consumer = {});

// Takes batches until the engine has tuned itself and the warm-up passes are over, or the time is up.
WarmUp warm_up(Loader& loader, const MeasuredRunOptions& options, ProgressLine& line);

// Returns the loader's statistics over that time. Throws ConfigError if the data end earlier.
LoaderStats run_measured(Loader& loader, const MeasuredRunOptions& options, ProgressLine& line);

// Waits until the engine has made all batches that fit and is idle.
void wait_until_idle(const Loader& loader);

// The share of a command's --seconds for its warm-up; --warm-up, if given, comes before --seconds.
struct TimePlan {
  double seconds = 0;  // --seconds
  double warm_up = 0;  // --warm-up; 0: not given

  double whole_seconds() const { return seconds + warm_up; }
  // Returns the limit for a warm-up that begins `elapsed` seconds after the start.
  double max_warm_up_seconds(double elapsed) const {
    return warm_up > 0 ? warm_up : std::max(0.0, kWarmUpShare * seconds - elapsed);
  }

  static constexpr double kWarmUpShare = 0.4;
};

// The rates that `headrace bench input --baseline` measures in turn with the engine, and the engine's lead.

inline constexpr int kPairs = 5;  // turns of each side; fewer if there is no time for all

// The samples of one comparison, and each turn's ratio of the engine's rate to its own.
struct ComparedRates {
  std::string key, name;  // in JSON and for people
  Baseline baseline;
  std::vector<double> rates = {}, ratios = {};

  // Runs one turn, after an engine turn with a rate of `engine` images per second.
  void run(int threads, double seconds, double engine);
  // Adds the rates and the median ratio of the pairs; keys have no prefix for the baseline, else `key`.
  void add_to(nlohmann::ordered_json& line) const;
  void print(double engine, std::FILE* people) const;
};

// Returns the bare work of a named pipeline and, if memory bounds it, the limit of memory alone.
std::vector<ComparedRates> compared_with(const std::string& pipeline, const PipelineOptions& options);

double median(std::vector<double> values);

// Returns the value below which `share` of the others, in [0, 1], lie; .5 is the median. Reorders the values.
// REQUIRES: there is at least one value.
inline double quantile(std::vector<double>& values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

// `headrace bench input --first-pass`: the rate of a run of one epoch; the memory of this process.

// One pass over the data by an engine that has not seen them: includes the indexing of JPEGs. The operating system
// may have the files in memory.
struct FirstPass {
  double images_per_second = 0;  // after the first batch, if there is more than one
  double seconds = 0;            // from the loader's construction on
  double first_batch_ms = 0;     // the start, and the first batch
  int threads = 0;               // at its end
  std::vector<double> waits_us;  // in next(), for each global batch but the first
};

// Measures a pass over newly opened data, about which nothing is known. Throws Error(kNotFound) if there is no
// batch.
FirstPass measure_first_pass(const PipelineCommandOptions& options, const Dataset& dataset, DeviceGroup& devices);

// Runs first passes, each on reopened data, and the others in turn, A B A B ..., each turn as long as the pass
// before it, after a pair that is not counted. Returns the passes.
std::vector<FirstPass> first_passes_in_turn(const PipelineCommandOptions& options, DeviceGroup& devices,
                                            std::vector<ComparedRates>& others);

// Returns the resident set size in bytes; 0 if the system does not report it.
std::uint64_t resident_memory_bytes();

// Returns its maximum so far; 0 if the system does not report it.
std::uint64_t peak_resident_memory_bytes();

// The range recorded by a profiler that waits for a signal: ncu --profile-from-start off, nsys
// --capture-range=cudaProfilerApi.

// Returns a callback that records only epoch `epoch` (from 1) of a fit: submitted work of adjacent epochs has
// ended by then. Throws ConfigError if there is no NVIDIA driver; if the driver refuses, prints a warning on
// standard error.
Callback profiled_epoch(int epoch);

}  // namespace headrace::tools
