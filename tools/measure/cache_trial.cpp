#include "headrace/tools/measure/cache_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "headrace/tools/measure/quantile.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

constexpr double kMaxBytes = 1 << 30;
// Shares of the trial's time: decoding the kept records once, and the turns of both.
constexpr double kFillShare = 0.2, kTurnShare = 0.4;
constexpr int kTurns = 5, kMinTurns = 3;  // of each; fewer if there is no time for all
// Limits of the trial: a multiple of its given time, plus seconds.
constexpr double kMaxShare = 1.5, kSlackSeconds = 0.5;
// Decoded samples are larger than what a crop leaves of them, smaller than floats made of them.
constexpr double kSampleBytesAByte = 4;

std::uint64_t records_for(const LoaderStats& without, std::int64_t global_batch, double fill_seconds) {
  const double bytes =
      kSampleBytesAByte * static_cast<double>(without.bytes) / static_cast<double>(without.examples);
  const double records = std::min(without.examples_per_second() * fill_seconds, kMaxBytes / bytes);
  return std::max(static_cast<std::uint64_t>(records), static_cast<std::uint64_t>(2 * global_batch));
}

// Filling takes two passes' decoding at worst; before each turn of the cache the one without refills its slots.
double expected_seconds(const LoaderStats& without, std::uint64_t records, double turn, int turns) {
  const double batch = static_cast<double>(without.elapsed_ns) * 1e-9 / static_cast<double>(without.batches);
  const double fill = 2 * static_cast<double>(records) / without.examples_per_second();
  return fill + turns * (turn + std::max(turn, batch) + (without.slots + 1) * batch);
}

// A turn begins with what the loader had ready: made while it was not its turn, it is not counted. It ends when
// the engine is at rest: then the processors are the other's.
LoaderStats take_turn(Loader& loader, const MeasuredRunOptions& run, ProgressLine& line) {
  for (int slot = loader.stats().slots; slot > 0; --slot) take_batch(loader, run.consumer);
  LoaderStats stats = run_measured(loader, run, line);
  wait_until_idle(loader);
  return stats;
}

}  // namespace

bool can_try_cache(const PipelineCommandOptions& options, const LoaderStats& so_far) {
  return so_far.decode_ns > 0 && options.common.cache == "none" && options.plan.empty();
}

std::optional<WhatIf> try_cache(PipelineCommandOptions options, const std::string& where, DeviceGroup& devices,
                                const LoaderOptions& loader, const UncachedRun& without,
                                const MeasuredRunOptions& run, double share, ProgressLine& line) {
  options.common.cache = where;
  PipelineOptions cached = options.pipeline_options();
  cached.records = records_for(without.stats, cached.global_batch, kFillShare * run.seconds);
  MeasuredRunOptions turn = run;
  turn.seconds = kTurnShare * run.seconds / (2 * kTurns);
  const Dataset dataset = make_pipeline(options.pipeline, cached);
  const std::uint64_t records = std::min(*cached.records, dataset.size());
  int turns = kTurns;
  if (expected_seconds(without.stats, records, turn.seconds, turns) > kMaxShare * run.seconds) turns = kMinTurns;
  const double expected = expected_seconds(without.stats, records, turn.seconds, turns);
  if (expected > kMaxShare * run.seconds + kSlackSeconds) {
    print(stderr,
          "headrace: no cache was tried: batches take long here; with --seconds {:.0f} there is time for it\n",
          std::ceil((expected - kSlackSeconds) / (kMaxShare * share)));
    return std::nullopt;
  }
  wait_until_idle(without.loader);
  LoaderOptions settings = loader;
  settings.threads = without.loader.threads();  // nothing is left to try out
  Loader trial(dataset, devices, settings);
  // Twice: batches are made ahead of the consumer, so the end of the first pass is not the end of the filling.
  MeasuredRunOptions warm = run;
  warm.warm_passes = 2;
  warm.max_warm_up_seconds = std::max(expected, run.seconds);
  warm_up(trial, warm, line);
  std::vector<double> rates, ratios;
  std::string bottleneck;
  for (int i = 0; i < turns; ++i) {
    const LoaderStats stats = take_turn(trial, turn, line);
    rates.push_back(stats.examples_per_second());
    ratios.push_back(rates.back() / take_turn(without.loader, turn, line).examples_per_second());
    bottleneck = judge(stats).bottleneck;
  }
  const double rate = quantile(rates, .5);
  return WhatIf{.what = fmt::format("every decoded sample in a cache, tried with {} in {}",
                                    cached.cache->counters().records, cached.cache->describe()),
                .images_per_second = rate,
                .bottleneck = bottleneck,
                .instead_of = rate / quantile(ratios, .5)};
}

}  // namespace headrace::tools
