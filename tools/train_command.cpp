// `headrace train`: a recipe from data to test accuracy.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>

#include "headrace/devices/base/counted.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/signals.h"
#include "headrace/devices/registry.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/common_options.h"
#include "headrace/tools/json_lines.h"
#include "headrace/tools/options.h"
#include "headrace/tools/output_check.h"
#include "headrace/tools/profiler_range.h"
#include "headrace/tools/progress_line.h"
#include "headrace/tools/recipe_run.h"
#include "headrace/tools/recipes.h"
#include "headrace/tools/run_folder.h"
#include "headrace/train/model.h"
#include "headrace/train/strategy.h"

namespace headrace::tools {
namespace {

struct TrainOptions {
  CommonOptions common{.cache = "auto"};
  std::string recipe;
  std::string precision = "auto";
  std::uint64_t steps_per_epoch = 0;
  std::uint64_t stop_after_steps = 0;
  int accumulate = 1;
  std::uint64_t headspace = 0;
  std::uint64_t runs = 1;
  int profile_epoch = 0;  // from 1; 0: none
  int verbose = 1;
  std::string run_dir;
  std::string trace;
  bool standalone = false;
};

constexpr std::size_t kSpansAThread = 1 << 16;  // the latest are kept

std::atomic<bool> interrupted{false};

// The first Ctrl-C ends the run after the present step, the second at once.
void on_interrupt() { interrupted = true; }

nlohmann::ordered_json epoch_line(const EpochReport& report) {
  nlohmann::ordered_json line = {{"epoch", report.epoch + 1},
                                 {"steps", report.steps},
                                 {"seconds", report.seconds},
                                 {"examples_per_second", report.examples_per_second},
                                 {"input_stall_fraction", report.input_stall_fraction},
                                 {"exposed_copy_fraction", report.exposed_copy_fraction},
                                 {"device_idle_fraction", report.device_idle_fraction},
                                 {"host_us_per_step", report.host_us_per_step},
                                 {"loss", report.loss},
                                 {"accuracy", report.accuracy}};
  if (report.val_loss) line["val_loss"] = *report.val_loss;
  if (report.val_accuracy) line["val_accuracy"] = *report.val_accuracy;
  if (report.bad_records > 0) line["bad_records"] = report.bad_records;
  return line;
}

// What the run writes, opened before the work: the lines of --json, the same in the run's folder, the trace.
class Results {
 public:
  explicit Results(const TrainOptions& options) : json_(options.common.json) {
    if (!options.trace.empty()) trace_ = std::make_shared<FileWriter>(options.trace);
    if (options.run_dir.empty()) return;
    folder_.emplace(options.run_dir);
    if (folder() != std::filesystem::path(options.run_dir)) {
      std::fprintf(people(), "%s holds a run already: this one goes to %s\n", options.run_dir.c_str(),
                   folder().c_str());
    }
    history_.emplace((folder() / kHistoryFile).string());
  }

  void write(const nlohmann::ordered_json& line) {
    json_.write(line);
    if (history_) history_->write(line);
  }
  // After the last line, also of a run that was interrupted.
  void finish() {
    json_.finish();
    if (history_) history_->finish();
  }
  std::FILE* people() const { return json_.people(); }
  // Of this run; empty without --run-dir.
  std::filesystem::path folder() const { return folder_ ? folder_->path() : std::filesystem::path(); }
  // Null without --trace.
  std::shared_ptr<FileWriter> trace() const { return trace_; }

 private:
  JsonLines json_;
  std::shared_ptr<FileWriter> trace_;
  std::optional<RunFolder> folder_;
  std::optional<JsonLines> history_;
};

FitOptions fit_options(const TrainOptions& options, const Recipe& recipe, Results& results) {
  FitOptions fit;
  fit.epochs = options.common.epochs > 0 ? static_cast<int>(options.common.epochs) : recipe.epochs;
  fit.steps_per_epoch = options.steps_per_epoch > 0 ? options.steps_per_epoch : recipe.steps_per_epoch;
  fit.validation = recipe.validation;
  fit.verbose = options.verbose;
  fit.output = results.people();
  fit.seed = options.common.seed;
  fit.threads = options.common.threads;
  fit.accumulate = options.accumulate;
  fit.headspace = options.headspace;
  fit.errors = options.common.errors.policy();
  fit.convert = options.common.convert_at();
  fit.resident = options.common.residency();
  fit.stop_after_steps = options.stop_after_steps;
  fit.stop = &interrupted;
  fit.callbacks.push_back(
      {.on_epoch_end = [&results](const EpochReport& report, FitControl&) { results.write(epoch_line(report)); }});
  if (options.profile_epoch > 0) fit.callbacks.push_back(profiled_epoch(options.profile_epoch));
  if (options.trace.empty()) return fit;
  fit.trace = std::make_shared<Trace>(kSpansAThread);
  fit.callbacks.push_back({.on_train_end = [file = results.trace(), trace = fit.trace](FitControl&) {
    const std::string spans = trace->to_json();
    file->append(std::as_bytes(std::span(spans)));
    file->commit();
  }});
  return fit;
}

// Of products: bf16 where the device computes them faster, unless it is said.
Precision precision_of(const TrainOptions& options, DeviceGroup& devices) {
  if (options.precision != "auto") return options.precision == "bf16" ? Precision::kBF16 : Precision::kF32;
  return devices[0].kernels()->prefers_bf16() ? Precision::kBF16 : Precision::kF32;
}

void describe_run(const TrainOptions& options, const std::filesystem::path& folder, const Recipe& recipe,
                  const Model& model) {
  if (folder.empty()) return;
  write_file_atomically(folder / kModelFile, model.summary());
  write_file_atomically(
      folder / kPlanFile,
      recipe.train.explain(model.strategy().devices(), options.common.convert_at(), options.common.residency()));
}

void report(const RecipeRun::Result& result, const Model& model, const FitOptions& fit, const char* precision,
            std::uint64_t bad_records, Results& results) {
  const Evaluation& test = result.test;
  const Strategy& strategy = model.strategy();
  results.write({{"final", true},
                 {"seed", fit.seed},
                 {"test_loss", test.loss},
                 {"test_accuracy", test.accuracy},
                 {"weights_sha256", model.weights_sha256()},
                 {"replicas", strategy.replicas()},
                 {"devices", strategy.devices().to_string()},
                 {"precision", precision},
                 {"steps", model.global_step()},
                 {"train_seconds", result.seconds},
                 {"bad_records", bad_records}});
}

// From the net's first values to its test accuracy; everything random follows from the options' seed.
void train_once(const TrainOptions& options, const Recipe& recipe, Strategy& strategy, Results& results) {
  const Precision precision = precision_of(options, strategy.devices());
  Model model = strategy.build(recipe.net, {.seed = options.common.seed, .fields = recipe.train.fields()});
  model.compile({.optimizer = recipe.optimizer, .loss = recipe.loss, .precision = precision});
  describe_run(options, results.folder(), recipe, model);

  const FitOptions fit = fit_options(options, recipe, results);
  ProgressLine line;
  EvaluateOptions test{
      .threads = options.common.threads, .errors = options.common.errors.policy(), .views = recipe.views};
  if (options.verbose == 1) {
    test.progress = [&line](std::uint64_t done, std::uint64_t of) {
      line.show(fmt::format("testing: batch {} of {}", done, of));
    };
  }
  RecipeRun run(recipe, model, fit, test);
  const RecipeRun::Result result = run.run();
  line.clear();
  if (options.verbose > 0) {
    std::fprintf(results.people(), "test: %s - loss: %.4f - accuracy: %.4f\n",
                 count_of(static_cast<std::uint64_t>(result.test.examples), "example").c_str(), result.test.loss,
                 result.test.accuracy);
  }
  options.common.warn_of_caches();
  report(result, model, fit, precision == Precision::kBF16 ? "bf16" : "f32", options.common.errors.bad_records(),
         results);
}

// A net for GPUs and for processors with units for bf16.
void warn_of_slow_net(const std::string& recipe, DeviceGroup& devices) {
  const bool slow = devices[0].info().kind == DeviceKind::kCpu && !devices[0].kernels()->prefers_bf16();
  if (!slow || !recipe.starts_with("cifar10-fast")) return;
  std::fprintf(
      stderr,
      "headrace: warning: %s is made for GPUs and processors with AMX, which this one lacks, and trains slowly "
      "here; cifar10-cnn is made for CPUs\n",
      recipe.c_str());
}

// The runs share the data and the devices, with all that these have loaded and chosen by then.
void train(const TrainOptions& options) {
  check_outputs(options.common, {{.option = "--trace", .path = options.trace}});
  if (options.runs - 1 > ~std::uint64_t{0} - options.common.seed) {
    throw ConfigError("--runs " + std::to_string(options.runs) + " from --seed " +
                          std::to_string(options.common.seed) + " needs seeds above the largest",
                      "give a smaller --seed");
  }
  Results results(options);
  DeviceGroup devices = open_devices(options.common.devices);
  Strategy strategy(devices, {.announce = Announce::kNo, .standalone = options.standalone});
  warn_of_slow_net(options.recipe, devices);
  const Recipe recipe = make_recipe(options.recipe, options.common);
  if (options.verbose > 0) std::fprintf(results.people(), "%s\n", strategy.to_string().c_str());
  handle_first_interrupt(on_interrupt);
  try {
    for (std::uint64_t run = 0; run < options.runs; ++run) {
      TrainOptions one = options;
      one.common.seed += run;
      train_once(one, recipe, strategy, results);
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kCancelled) {
      results.finish();
      options.common.errors.report();
    }
    throw;
  }
  options.common.errors.report();
  results.finish();
}

}  // namespace

void add_train_command(CLI::App& program) {
  auto* command = program.add_subcommand("train", "train a recipe and evaluate it");
  auto options = std::make_shared<TrainOptions>();
  add_choice(*command, "--recipe", options->recipe, "the recipe to train", recipe_names())->required();
  options->common.add_to(*command);
  add_choice(*command, "--precision", options->precision,
             "of products and activations (sums are f32); auto takes bf16 where the device has units for it",
             {"auto", "f32", "bf16"})
      ->capture_default_str();
  add_number(*command, "--steps-per-epoch", options->steps_per_epoch,
             "optimizer steps in an epoch; 0: as the recipe says, usually one pass over the data", kSteps);
  add_number(*command, "--stop-after-steps", options->stop_after_steps,
             "end the training after this many optimizer steps; 0: at its end", kSteps);
  add_number(*command, "--headspace", options->headspace,
             "replay the first N batches for ever, to see how fast it trains where input costs nothing; 0: off",
             kSteps);
  add_number(*command, "--runs", options->runs,
             "train N times in this process, with --seed, the seed after it and so on, each as if alone",
             {.min = 1, .max = std::numeric_limits<int>::max()});
  add_number(
      *command, "--profile-epoch", options->profile_epoch,
      "the epoch, from 1, that ncu --profile-from-start off or nsys --capture-range=cudaProfilerApi records",
      {.min = 1});
  add_number(*command, "--accumulate", options->accumulate, "batches summed into one optimizer step", {.min = 1});
  add_number(*command, "--verbose", options->verbose, "0: nothing, 1: a live progress bar, 2: a line per epoch",
             {.min = 0, .max = 2})
      ->capture_default_str();
  command
      ->add_option("--trace", options->trace,
                   "write what each thread and each device did to this file, for ui.perfetto.dev")
      ->type_name("FILE")
      ->excludes("--runs");
  command
      ->add_option("--run-dir", options->run_dir,
                   "folder for history.jsonl, model.txt and plan.txt; if it holds a run already, this one gets a "
                   "numbered folder inside it")
      ->type_name("FOLDER");
  command->add_flag("--standalone", options->standalone,
                    "train alone, although a launcher started this process as one of several");
  command->callback([options] { train(*options); });
}

}  // namespace headrace::tools
