// `headrace bench input`: how fast the engine alone delivers a pipeline.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/pipelines.h"
#include "headrace/tools/baseline.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/json_lines.h"
#include "headrace/tools/measured_run.h"
#include "headrace/tools/options.h"
#include "headrace/tools/output_check.h"
#include "headrace/tools/pipeline_options.h"
#include "headrace/tools/quantile.h"
#include "headrace/tools/resident_memory.h"

namespace headrace::tools {
namespace {

constexpr std::uint64_t kWithoutEnd = std::uint64_t{1} << 30;  // epochs: the clock ends the run
constexpr double kMinSeconds = 0.01;
constexpr int kPairs = 5;

struct BenchOptions : PipelineCommandOptions {
  double seconds = 5;
  bool baseline = false;
};

struct Measured {
  double images_per_second = 0;
  double p50_us = 0, p99_us = 0;  // waiting in next(), a global batch
  double first_batch_ms = 0;
  int threads = 0;
};

Measured measure(const BenchOptions& options, const Dataset& dataset, DeviceGroup& devices, double seconds) {
  LoaderOptions settings = options.loader();
  if (options.common.epochs == 0) settings.epochs = kWithoutEnd;
  const Stopwatch since_start;
  Loader loader(dataset, devices, settings);
  if (!take_batch(loader, devices.size()))
    throw ConfigError("the pipeline has no batches", "is the data set empty?");
  Measured result{.first_batch_ms = since_start.seconds() * 1e3};

  warm_up(loader, devices.size(), {.warm_passes = options.common.epochs == 0 ? 1 : 0});
  std::vector<double> waits;
  std::int64_t images = 0;
  const Stopwatch clock;
  while (clock.seconds() < seconds) {
    const Stopwatch wait;
    const std::optional<std::int64_t> examples = take_batch(loader, devices.size());
    if (!examples) break;
    waits.push_back(wait.seconds() * 1e6);
    images += *examples;
  }
  if (waits.empty())
    throw ConfigError("the stream ended with its first batch", "give more --epochs or a smaller --global-batch");
  result.images_per_second = static_cast<double>(images) / clock.seconds();
  result.threads = loader.threads();
  result.p50_us = quantile(waits, 0.50);
  result.p99_us = quantile(waits, 0.99);
  return result;
}

nlohmann::ordered_json to_json(const BenchOptions& options, const Measured& measured) {
  return {{"pipeline", options.pipeline},
          {"images_per_second", measured.images_per_second},
          {"threads", measured.threads},
          {"p50_us", measured.p50_us},
          {"p99_us", measured.p99_us},
          {"first_batch_ms", measured.first_batch_ms},
          {"rss_mb", static_cast<double>(resident_memory_bytes()) / (1 << 20)}};
}

// Engine and baseline in turn, A B A B ..., after a warm-up pair; the ratio is the median of the pairs'.
void add_baseline(const BenchOptions& options, const Dataset& dataset, DeviceGroup& devices,
                  nlohmann::ordered_json& line, std::FILE* people) {
  const double seconds = options.seconds / kPairs;
  std::vector<double> ratios, ours, theirs;
  for (int pair = -1; pair < kPairs; ++pair) {
    const Measured engine = measure(options, dataset, devices, seconds);
    const double baseline = baseline_rate(options.pipeline, options.pipeline_options(), engine.threads, seconds);
    if (pair < 0) continue;
    ours.push_back(engine.images_per_second);
    theirs.push_back(baseline);
    ratios.push_back(engine.images_per_second / baseline);
  }
  line["samples"] = {{"headrace", ours}, {"baseline", theirs}};
  line["ratios"] = ratios;
  line["images_per_second"] = quantile(ours, 0.5);
  line["baseline"] = baseline_name(options.pipeline);
  line["baseline_images_per_second"] = quantile(theirs, 0.5);
  line["ratio"] = quantile(ratios, 0.5);
  line["ratio_min"] = *std::ranges::min_element(ratios);
  line["ratio_max"] = *std::ranges::max_element(ratios);
  std::fprintf(people, "%s: %.0f images/s; the engine's %.0f are %.2f of it (%.2f to %.2f, %d pairs)\n",
               baseline_name(options.pipeline).c_str(), quantile(theirs, 0.5), quantile(ours, 0.5),
               quantile(ratios, 0.5), *std::ranges::min_element(ratios), *std::ranges::max_element(ratios),
               kPairs);
}

void bench_input(const BenchOptions& options) {
  check_outputs(options.common);
  JsonLines json(options.common.json);
  if (options.baseline && baseline_name(options.pipeline).empty()) {
    throw ConfigError("pipeline " + options.pipeline + " has no baseline",
                      "jpeg-*, cifar-train and skewed have one");
  }
  const Dataset dataset = options.open();
  DeviceGroup devices = options.devices();
  const Measured measured = measure(options, dataset, devices, options.seconds);
  nlohmann::ordered_json line = to_json(options, measured);
  std::fprintf(json.people(),
               "%s: %.0f images/s on %d threads; wait p50 %.0f us, p99 %.0f us; first batch %.0f ms\n",
               options.pipeline.c_str(), measured.images_per_second, measured.threads, measured.p50_us,
               measured.p99_us, measured.first_batch_ms);
  if (options.baseline) add_baseline(options, dataset, devices, line, json.people());
  options.common.warn_of_caches();
  json.write(line);
  json.finish();
}

}  // namespace

void add_bench_command(CLI::App& program) {
  auto* bench = program.add_subcommand("bench", "measure throughput");
  auto* command = bench->add_subcommand("input", "measure the input engine alone");
  auto options = std::make_shared<BenchOptions>();
  options->add_to(*command);
  add_number(*command, "--seconds", options->seconds, "how long it all takes, warm-up and baseline included",
             {.min = kMinSeconds})
      ->capture_default_str();
  command->add_flag("--baseline", options->baseline,
                    "compare with the least code that does the same work, in turn");
  command->callback([options] { bench_input(*options); });
}

}  // namespace headrace::tools
