#include "headrace/tools/cache_trial.h"

#include <fmt/format.h>

#include <algorithm>

namespace headrace::tools {
namespace {

constexpr double kFillSeconds = 1, kMostBytes = 1 << 30;
// Decoded samples are larger than what a crop leaves of them, smaller than floats made of them.
constexpr double kSampleBytesAByte = 4;

std::uint64_t records_for(const LoaderStats& without, std::int64_t global_batch) {
  const double bytes =
      kSampleBytesAByte * static_cast<double>(without.bytes) / static_cast<double>(without.examples);
  const double records = std::min(without.examples_per_second() * kFillSeconds, kMostBytes / bytes);
  return std::max(static_cast<std::uint64_t>(records), static_cast<std::uint64_t>(2 * global_batch));
}

}  // namespace

std::optional<WhatIf> try_cache(PipelineCommandOptions options, const std::string& where, DeviceGroup& devices,
                                const LoaderOptions& loader, const LoaderStats& without,
                                const MeasuredRunOptions& run) {
  if (without.decode_ns == 0 || options.common.cache != "none") return std::nullopt;
  options.common.cache = where;
  PipelineOptions cached = options.pipeline_options();
  cached.records = records_for(without, cached.global_batch);
  Loader trial(make_pipeline(options.pipeline, cached), devices, loader);
  // Twice: batches are made ahead of the consumer, so the end of the first pass is not the end of the filling.
  MeasuredRunOptions warm = run;
  warm.warm_passes = 2;
  const LoaderStats stats = run_measured(trial, devices.size(), warm);
  return WhatIf{.what = fmt::format("every decoded sample in a cache, tried with {} in {}",
                                    cached.cache->counters().records, cached.cache->describe()),
                .images_per_second = stats.examples_per_second(),
                .bottleneck = judge(stats).bottleneck};
}

}  // namespace headrace::tools
