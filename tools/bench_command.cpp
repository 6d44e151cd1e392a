// `headrace bench input`: how fast the engine alone delivers a pipeline.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/text.h"
#include "headrace/pipeline/loader.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/measure/measured_run.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/options/pipeline_options.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/output/output_check.h"
#include "headrace/tools/output/print.h"

namespace headrace::tools {
namespace {

constexpr double kMinMeasuredShare = 0.3;  // of --seconds, however long the start took
constexpr double kWorthSaying = 1.25;      // a run that takes this multiple of the requested time says so

struct BenchOptions : PipelineCommandOptions {
  double seconds = 5;
  double warm_up = 0;  // 0: a part of `seconds`
  bool baseline = false, first_pass = false;

  TimePlan plan() const { return {.seconds = seconds, .warm_up = warm_up}; }
  // Whether the data is read again and again until the time is over; a stream can be read only once.
  bool repeats(const Dataset& dataset) const { return common.epochs == 0 && !dataset.one_pass(); }
};

// The engine at work on one pipeline, measured in turns.
class Bench {
 public:
  Bench(const BenchOptions& options, const Dataset& dataset, DeviceGroup& devices)
      : loader_(dataset, devices, settings(options, dataset)) {
    take_first_batch(loader_);
    first_batch_ms_ = clock_.seconds() * 1e3;
    warm_up_ = warm_up(loader_,
                       {.warm_passes = options.repeats(dataset) ? 1 : 0,
                        .max_warm_up_seconds = options.plan().max_warm_up_seconds(clock_.seconds())},
                       line_);
  }

  // Returns the images per second over at least one batch; std::nullopt if the stream ended.
  std::optional<double> measure(double seconds) {
    std::int64_t images = 0;
    const Stopwatch turn;
    do {
      const Stopwatch wait;
      const std::optional<std::int64_t> examples = take_batch(loader_);
      if (!examples) break;
      waits_.push_back(wait.seconds() * 1e6);
      images += *examples;
      line_.show(fmt::format("measuring: {:.1f} s so far", clock_.seconds()));
    } while (turn.seconds() < seconds);
    if (images == 0) return std::nullopt;
    return static_cast<double>(images) / turn.seconds();
  }
  // Before another's turn: the processors are free then, and what was made ahead is not counted as made in a turn.
  void rest() { wait_until_idle(loader_); }
  void take_what_is_ready() {
    for (int slot = loader_.stats().slots; slot > 0; --slot) take_batch(loader_);
  }

  bool warmed_up() const { return warm_up_.finished; }
  double seconds_since_start() const { return clock_.seconds(); }
  // Returns the time of a batch; if the warm-up had no time for one, that of the first batch, including the start.
  double batch_seconds() const {
    return warm_up_.batch_seconds > 0 ? warm_up_.batch_seconds : 1e-3 * first_batch_ms_;
  }
  double seconds_to_rest() const { return loader_.stats().slots * batch_seconds(); }
  int threads() const { return loader_.threads(); }
  double first_batch_ms() const { return first_batch_ms_; }
  std::vector<double>& waits_us() { return waits_; }  // in next(), of each global batch
  ProgressLine& line() { return line_; }

 private:
  static LoaderOptions settings(const BenchOptions& options, const Dataset& dataset) {
    LoaderOptions settings = options.loader();
    if (options.repeats(dataset)) settings.epochs = kEndlessEpochs;
    return settings;
  }

  Stopwatch clock_;
  Loader loader_;
  ProgressLine line_;
  double first_batch_ms_ = 0;
  WarmUp warm_up_;
  std::vector<double> waits_;
};

ConfigError ended_early() {
  return ConfigError("the stream ended before it was measured", "give more --epochs or a smaller --global-batch");
}

double megabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// Memory is that of now.
nlohmann::ordered_json bench_line(const BenchOptions& options, int threads, double first_batch_ms) {
  return {{"pipeline", options.name()},
          {"images_per_second", 0.0},
          {"threads", threads},
          {"p50_us", 0.0},
          {"p99_us", 0.0},
          {"first_batch_ms", first_batch_ms},
          {"rss_mb", megabytes(resident_memory_bytes())},
          {"peak_rss_mb", megabytes(peak_resident_memory_bytes())}};
}

void set_rates(nlohmann::ordered_json& line, double images_per_second, std::vector<double>& waits_us) {
  line["images_per_second"] = images_per_second;
  if (waits_us.empty()) return;
  line["p50_us"] = quantile(waits_us, 0.50);
  line["p99_us"] = quantile(waits_us, 0.99);
}

void say_how_long(double expected, double asked) {
  if (expected < kWorthSaying * asked) return;
  print(stderr,
        "headrace: this will take about {:.0f} s rather than {:g}: a batch takes long, and each side has a turn\n",
        std::ceil(expected), asked);
}

// The engine and what it is compared with in turn, A B A B ...; the engine's samples.
std::vector<double> take_turns(const BenchOptions& options, Bench& bench, std::vector<ComparedRates>& others) {
  const double trial = options.seconds / (4 * kPairs);
  const auto count = static_cast<double>(others.size());
  const auto time_left = [&] {
    return std::max(options.plan().whole_seconds() - bench.seconds_since_start(),
                    kMinMeasuredShare * options.seconds);
  };
  double beside = bench.seconds_to_rest();  // what a turn takes beside its time
  if (beside + count * trial < time_left()) {
    bench.rest();
    const Stopwatch watch;
    for (ComparedRates& other : others) other.baseline(bench.threads(), trial);
    beside += std::max(0.0, watch.seconds() - count * trial);
  }
  const double left = time_left();
  const double batch = bench.batch_seconds();
  // As many as there is time for.
  const double least = std::max(trial, batch) + beside + count * trial;
  const int pairs = static_cast<int>(std::clamp(left / least, 1.0, static_cast<double>(kPairs)));
  const double turn = std::max((left / pairs - beside) / (1 + count), trial);
  say_how_long(bench.seconds_since_start() + pairs * (std::max(turn, batch) + beside + count * turn),
               options.plan().whole_seconds());
  std::vector<double> ours;
  for (int pair = 0; pair < pairs; ++pair) {
    bench.take_what_is_ready();
    const std::optional<double> engine = bench.measure(turn);
    if (!engine) break;
    bench.rest();
    ours.push_back(*engine);
    for (ComparedRates& other : others) other.run(bench.threads(), turn, *engine);
  }
  if (ours.empty()) throw ended_early();
  return ours;
}

void print_rates(const nlohmann::ordered_json& line, const LocalBatch& batch, std::FILE* people) {
  const auto number = [&line](const char* key) { return line[key].get<double>(); };
  print(people,
        "{}: {:.0f} images/s on {}; wait p50 {:.0f} us, p99 {:.0f} us; first batch {:.0f} ms; memory {:.0f} "
        "MB, {:.0f} MB at its peak\n",
        line["pipeline"].get<std::string>(), number("images_per_second"),
        count_of(line["threads"].get<std::uint64_t>(), "thread"), number("p50_us"), number("p99_us"),
        number("first_batch_ms"), number("rss_mb"), number("peak_rss_mb"));
  print(people, "{}\n", batch.describe());
  if (!line.value("warmed_up", true)) {
    print(people,
          "measured before it had warmed up: more --seconds give the engine time to tune itself and to see "
          "all data once\n");
  }
}

// The measurements, and the rates compared with them.
struct Measured {
  nlohmann::ordered_json line;
  std::vector<ComparedRates> others = {};
};

std::vector<ComparedRates> compared_with(const BenchOptions& options) {
  if (!options.baseline) return {};
  return compared_with(options.pipeline, options.pipeline_options());
}

Measured measure_warm(const BenchOptions& options, const Dataset& dataset, DeviceGroup& devices) {
  Bench bench(options, dataset, devices);
  Measured measured{bench_line(options, bench.threads(), bench.first_batch_ms())};  // the engine's memory alone
  if (options.baseline) {
    measured.others = compared_with(options);
    std::vector<double> ours = take_turns(options, bench, measured.others);
    set_rates(measured.line, median(ours), bench.waits_us());
    measured.line["samples"]["headrace"] = std::move(ours);
  } else {
    const double left = options.plan().whole_seconds() - bench.seconds_since_start();
    const std::optional<double> rate = bench.measure(std::max(left, kMinMeasuredShare * options.seconds));
    if (!rate) throw ended_early();
    set_rates(measured.line, *rate, bench.waits_us());
    measured.line["threads"] = bench.threads();
  }
  measured.line["warmed_up"] = bench.warmed_up();
  bench.line().clear();
  return measured;
}

// One pass; beside a baseline, several.
Measured measure_first(const BenchOptions& options, const Dataset& dataset, DeviceGroup& devices) {
  if (options.common.cache != "none" && options.common.cache != "memory") {
    throw ConfigError("--first-pass with a disk cache: the next first pass would find the samples of this one",
                      "--cache none or memory");
  }
  std::vector<ComparedRates> others = compared_with(options);
  const std::vector<FirstPass> passes =
      options.baseline ? first_passes_in_turn(options, devices, others)
                       : std::vector<FirstPass>{measure_first_pass(options, dataset, devices)};
  std::vector<double> rates, waits_us;
  for (const FirstPass& pass : passes) {
    rates.push_back(pass.images_per_second);
    waits_us.insert(waits_us.end(), pass.waits_us.begin(), pass.waits_us.end());
  }
  Measured measured{bench_line(options, passes.back().threads, passes.back().first_batch_ms), std::move(others)};
  set_rates(measured.line, median(rates), waits_us);
  measured.line["first_pass"] = true;
  if (options.baseline) measured.line["samples"]["headrace"] = std::move(rates);
  return measured;
}

void bench_input(const BenchOptions& options) {
  options.check_outputs();
  JsonLines json(options.common.json);
  const Dataset dataset = options.open();
  if (options.baseline) {
    const bool cached = options.common.cache != "none" && !options.first_pass;  // which fills it with the pass
    require_comparable(options.pipeline, *dataset.source(), cached);
  }
  DeviceGroup devices = options.devices();
  Measured measured =
      options.first_pass ? measure_first(options, dataset, devices) : measure_warm(options, dataset, devices);
  nlohmann::ordered_json& line = measured.line;
  for (const ComparedRates& other : measured.others) other.add_to(line);
  const LocalBatch batch = local_batch(dataset, dataset.global_batch(), devices.size());
  print_rates(line, batch, json.text_output());
  for (const ComparedRates& other : measured.others) {
    other.print(line["images_per_second"].get<double>(), json.text_output());
  }
  options.common.warn_of_caches();
  options.common.errors.report();
  line["global_batch"] = batch.global_batch;
  line["local_batch"] = batch.max;
  line["bad_records"] = options.common.errors.bad_records();
  json.write(line);
  json.finish();
}

}  // namespace

void add_bench_command(CLI::App& program) {
  auto* bench = program.add_subcommand("bench", "measure throughput");
  auto* command = bench->add_subcommand("input", "measure the input engine alone");
  auto options = std::make_shared<BenchOptions>();
  options->add_to(*command);
  options->common.add_order_to(*command);
  add_number(*command, "--seconds", options->seconds,
             "how long the whole run takes, warm-up and baseline included",
             {.min = kMinSeconds, .max = kMaxSeconds})
      ->capture_default_str();
  add_number(*command, "--warm-up", options->warm_up,
             "maximum of seconds for a warm-up before --seconds begin; without it, a part of --seconds",
             {.min = kMinSeconds, .max = kMaxSeconds});
  command->add_flag("--baseline", options->baseline,
                    "compare with the least code that does the same work, in turn");
  command
      ->add_flag(
          "--first-pass", options->first_pass,
          "measure a run of one epoch: one pass over the data, the indexing of JPEGs included; with --baseline "
          "several, each by a new engine")
      ->excludes("--seconds", "--warm-up", "--epochs");
  PipelineCommandOptions::exclude_plan(*command, {"--baseline"});
  command->callback([options] { bench_input(*options); });
}

}  // namespace headrace::tools
