// `headrace explain`: the plan as it will run and, if it is run, what bounds it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/prefetch_choice.h"
#include "headrace/pipeline/stats.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/measure/cache_trial.h"
#include "headrace/tools/measure/measured_run.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/options/pipeline_options.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/output/local_batch.h"
#include "headrace/tools/output/output_check.h"
#include "headrace/tools/output/print.h"
#include "headrace/tools/output/stage_lines.h"

namespace headrace::tools {
namespace {

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
  const std::string plan = dataset.explain(devices, settings.convert, settings.resident);
  const LocalBatch batch = local_batch(dataset, dataset.global_batch(), devices.size());
  print(json.people(), "{}{}\n", Lines{plan}, batch.describe());
  if (options.seconds == 0 && options.trace.empty()) {
    const Choice prefetch = choose_prefetch(dataset, devices, settings);
    print_choice(json.people(), prefetch);
    json.write({{"plan", plan},
                {"global_batch", batch.global_batch},
                {"local_batch", batch.max},
                {"prefetch", std::stoi(prefetch.value)},
                {"prefetch_reason", prefetch.reason}});
    return json.finish();
  }
  if (options.seconds == 0) options.seconds = kTraceSeconds;

  const bool repeats = options.common.epochs == 0 && !dataset.streamed();  // a stream can be read only once
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
  const bool tries = can_try_cache(options, loader.stats());
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
    print(json.people(),
          "\nmeasured before it had warmed up: more --seconds give the engine time to tune itself and to see all "
          "data once\n");
  }
  print_stages(json.people(), stats, loader.choices(), verdict);
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
