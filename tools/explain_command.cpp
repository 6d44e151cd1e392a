// `headrace explain`: the plan as it will run and, if it is run, what bounds it.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/prefetch_choice.h"
#include "headrace/pipeline/stats.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/measure/measured_run.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/options/pipeline_options.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/output/output_check.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

// The running pipeline without a cache, and its statistics so far.
struct UncachedRun {
  Loader& loader;
  const LoaderStats& stats;
};

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

// Returns whether the loader has decoded something so far that no cache keeps.
bool can_try_cache(const PipelineCommandOptions& options, const LoaderStats& so_far) {
  return so_far.decode_ns > 0 && options.common.cache == "none" && options.plan.empty();
}

// Fills the cache `where`, "memory" or a folder, with as many records as can be decoded in a fifth of
// `run.seconds`, a `share` of --seconds, with a maximum of about a GiB and a minimum of two batches; then runs the
// same pipeline on them, in turn with the one without a cache. All of it takes about `run.seconds`; if batches
// take too long for that, a line on standard error gives the --seconds that would suffice, and nothing is tried.
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

constexpr double kTraceSeconds = 2;  // where only a trace was asked for
constexpr std::size_t kSpansPerThread = 1 << 14;
constexpr int kNameWidth = 48;
// Shares of --seconds: the minimum for measuring the plan, and the part for trying a cache.
constexpr double kMeasuredShare = 0.3, kTrialShare = 0.3;

struct ExplainOptions : PipelineCommandOptions {
  double seconds = 0;
  double warm_up = 0;            // 0: a part of `seconds`
  std::int64_t consumer_us = 0;  // slept a batch, in place of a training step
  std::string try_cache = {};    // empty: in memory
  std::string trace = {};
  std::string write_plan = {};
};

void print_choice(std::FILE* people, const Choice& choice) {
  print(people, "{}: {}, {}\n", choice.what, choice.value, choice.reason);
}

void print_stages(std::FILE* people, const LoaderStats& stats, const std::vector<Choice>& choices,
                  const Verdict& verdict) {
  print(people, "\n{:<{}} {:>7} {:>10} {:>12} {:>9} {:>11} {:>11}\n", "stage", kNameWidth, "threads", "items",
        "ns an item", "occupancy", "wait p50 us", "wait p99 us");
  for (const StageStats& stage : stats.stages) {
    print(people, "{:<{}.{}} {:>7} {:>10} {:>12.0f} {:>8.1f}% {:>11.1f} {:>11.1f}\n", stage.name, kNameWidth,
          kNameWidth, stage.threads, stage.items, stage.ns_per_item(), 100 * stage.occupancy(stats.elapsed_ns),
          microseconds(stage.waits, 0.50), microseconds(stage.waits, 0.99));
  }
  print(people, "\n");
  for (const Choice& choice : choices) print_choice(people, choice);
  print(people, "{}\n{}\n", stats.summary(), verdict.sentence());
  for (const WhatIf& what_if : verdict.what_ifs) {
    print(people, "  {}\n", verdict.sentence(what_if));
  }
}

// Refuses options of a run if there is no run.
void refuse_without_run(const ExplainOptions& options) {
  const auto refuse = [](bool given, const std::string& option) {
    if (given) throw ConfigError(option + " needs a run", "give --seconds, or leave it out");
  };
  if (options.seconds == 0 && options.trace.empty()) {
    refuse(options.warm_up > 0, "--warm-up");
    refuse(options.consumer_us > 0, "--consumer-us");
    refuse(!options.try_cache.empty(), "--try-cache");
  }
  if (options.try_cache.empty() || options.common.cache == "none") return;
  throw ConfigError("--try-cache tries what a cache would gain, and --cache " + options.common.cache + " is one",
                    "give one of them");
}

void explain(ExplainOptions options) {
  const NamedPath trace_file{.option = "--trace", .path = options.trace};
  const NamedPath plan_file{.option = "--write-plan", .path = options.write_plan};
  options.check_outputs({trace_file, plan_file});
  if (!options.try_cache.empty() && options.try_cache != "memory") {
    check_outputs({trace_file, {.option = "--json", .path = options.common.json}},
                  {{.option = "--try-cache", .path = options.try_cache}});
  }
  refuse_without_run(options);
  if (options.try_cache.empty()) options.try_cache = "memory";
  JsonLines json(options.common.json);
  std::optional<FileWriter> trace;
  if (!options.trace.empty()) trace.emplace(options.trace);
  const Dataset dataset = options.open();
  if (!options.write_plan.empty()) write_file_atomically(options.write_plan, dataset.to_json(pipeline_parts()));
  DeviceGroup devices = options.devices();
  LoaderOptions settings = options.loader();
  const std::string plan = dataset.explain(devices, settings.convert, settings.resident, settings.decode);
  const LocalBatch batch = local_batch(dataset, dataset.global_batch(), devices.size());
  print(json.text_output(), "{}{}\n", Lines{plan}, batch.describe());
  if (options.seconds == 0 && options.trace.empty()) {
    const Choice prefetch = choose_prefetch(dataset, devices, settings);
    print_choice(json.text_output(), prefetch);
    json.write({{"plan", plan},
                {"global_batch", batch.global_batch},
                {"local_batch", batch.max},
                {"prefetch", std::stoi(prefetch.value)},
                {"prefetch_reason", prefetch.reason}});
    return json.finish();
  }
  if (options.seconds == 0) options.seconds = kTraceSeconds;

  const bool repeats = options.common.epochs == 0 && !dataset.one_pass();
  if (repeats) settings.epochs = kEndlessEpochs;
  if (!options.trace.empty()) settings.trace_spans = kSpansPerThread;
  const TimePlan time{.seconds = options.seconds, .warm_up = options.warm_up};
  const Stopwatch clock;
  ProgressLine line;
  Loader loader(dataset, devices, settings);
  MeasuredRunOptions measured{.consumer = std::chrono::microseconds(options.consumer_us),
                              .warm_passes = repeats ? 1 : 0};
  take_first_batch(loader, measured.consumer);
  measured.max_warm_up_seconds = time.max_warm_up_seconds(clock.seconds());
  const WarmUp warm = warm_up(loader, measured, line);
  const bool tries = !dataset.streamed() && can_try_cache(options, loader.stats());
  const double trial = tries ? kTrialShare * options.seconds : 0;
  measured.seconds = std::max(time.whole_seconds() - clock.seconds() - trial, kMeasuredShare * options.seconds);
  const LoaderStats stats = run_measured(loader, measured, line);
  Verdict verdict = judge(stats);
  if (tries) {
    measured.seconds = trial;
    line.clear();
    const std::optional<WhatIf> gain = try_cache(options, options.try_cache, devices, settings,
                                                 {.loader = loader, .stats = stats}, measured, kTrialShare, line);
    if (gain) verdict.what_ifs.push_back(*gain);
  }
  line.clear();
  if (!warm.finished) {
    print(json.text_output(),
          "\nmeasured before it had warmed up: more --seconds give the engine time to tune itself and to see all "
          "data once\n");
  }
  print_stages(json.text_output(), stats, loader.choices(), verdict);
  for (const StageStats& stage : stats.stages) json.write(stage_line(stage, stats.elapsed_ns));
  for (const Choice& choice : loader.choices()) {
    json.write({{"choice", choice.what}, {"value", choice.value}, {"reason", choice.reason}});
  }
  nlohmann::ordered_json last = verdict_line(verdict, stats);
  last["global_batch"] = batch.global_batch;
  last["local_batch"] = batch.max;
  last["bad_records"] = options.common.errors.bad_records();
  json.write(last);
  json.finish();
  options.common.errors.report();
  if (!trace) return;
  const std::string spans = loader.trace_json();
  trace->append(std::as_bytes(std::span(spans)));
  trace->commit();
}

}  // namespace

void add_explain_command(CLI::App& program) {
  auto* command =
      program.add_subcommand("explain", "show the plan of a pipeline as it will run, and what limits its speed");
  auto options = std::make_shared<ExplainOptions>();
  options->add_to(*command);
  add_number(*command, "--seconds", options->seconds,
             "run it for this long, warm-up and trial of a cache included, and say what limits its speed",
             {.min = kMinSeconds, .max = kMaxSeconds});
  add_number(*command, "--warm-up", options->warm_up,
             "maximum of seconds for a warm-up before --seconds begin; without it, a part of --seconds",
             {.min = kMinSeconds, .max = kMaxSeconds});
  add_number(*command, "--consumer-us", options->consumer_us,
             "microseconds that a simulated consumer spends on a batch",
             {.min = 0, .max = static_cast<std::int64_t>(kMaxSeconds * 1e6)});
  command
      ->add_option("--try-cache", options->try_cache,
                   "the cache to try as a what-if: memory, or a folder, which keeps what is stored there")
      ->type_name("WHERE");
  command
      ->add_option("--trace", options->trace,
                   "write what each thread did to this file, which ui.perfetto.dev shows")
      ->type_name("FILE");
  command
      ->add_option("--write-plan", options->write_plan,
                   "write the plan as JSON to this file, for --plan and for programs")
      ->type_name("FILE");
  PipelineCommandOptions::exclude_plan(*command, {"--try-cache"});
  command->callback([options] { explain(*options); });
}

}  // namespace headrace::tools
