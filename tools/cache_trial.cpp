#include "headrace/tools/cache_trial.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "headrace/tools/quantile.h"

namespace headrace::tools {
namespace {

constexpr double kFillSeconds = 1, kMostBytes = 1 << 30;
constexpr int kTurns = 5;  // of each
// Decoded samples are larger than what a crop leaves of them, smaller than floats made of them.
constexpr double kSampleBytesAByte = 4;

std::uint64_t records_for(const LoaderStats& without, std::int64_t global_batch) {
  const double bytes =
      kSampleBytesAByte * static_cast<double>(without.bytes) / static_cast<double>(without.examples);
  const double records = std::min(without.examples_per_second() * kFillSeconds, kMostBytes / bytes);
  return std::max(static_cast<std::uint64_t>(records), static_cast<std::uint64_t>(2 * global_batch));
}

// A turn begins with what the loader had ready: made while it was not its turn, it is not counted. It ends when
// the batches that are made ahead are there again: then the processors are the other's.
LoaderStats take_turn(Loader& loader, int replicas, MeasuredRunOptions run) {
  run.warm_passes = 0;
  const int slots = loader.stats().slots;
  for (int slot = 0; slot < slots; ++slot) take_batch(loader, replicas, run.consumer);
  LoaderStats stats = run_measured(loader, replicas, run);
  std::this_thread::sleep_for(std::chrono::nanoseconds(2 * stats.elapsed_ns * static_cast<std::uint64_t>(slots) /
                                                       std::max<std::uint64_t>(stats.batches, 1)));
  return stats;
}

}  // namespace

std::optional<WhatIf> try_cache(PipelineCommandOptions options, const std::string& where, DeviceGroup& devices,
                                const LoaderOptions& loader, const UncachedRun& without,
                                const MeasuredRunOptions& run) {
  if (without.stats.decode_ns == 0 || options.common.cache != "none") return std::nullopt;
  options.common.cache = where;
  PipelineOptions cached = options.pipeline_options();
  cached.records = records_for(without.stats, cached.global_batch);
  Loader trial(make_pipeline(options.pipeline, cached), devices, loader);
  // Twice: batches are made ahead of the consumer, so the end of the first pass is not the end of the filling.
  MeasuredRunOptions warm = run;
  warm.warm_passes = 2;
  warm_up(trial, devices.size(), warm);
  MeasuredRunOptions turn = run;
  turn.seconds = run.seconds / kTurns;
  std::vector<double> rates, ratios;
  std::string bottleneck;
  for (int i = 0; i < kTurns; ++i) {
    const LoaderStats stats = take_turn(trial, devices.size(), turn);
    rates.push_back(stats.examples_per_second());
    ratios.push_back(rates.back() / take_turn(without.loader, devices.size(), turn).examples_per_second());
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
