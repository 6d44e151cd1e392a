// `headrace train`: a recipe from data to test accuracy.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/signals.h"
#include "headrace/devices/base/text.h"
#include "headrace/devices/kernels.h"
#include "headrace/tools/commands.h"
#include "headrace/tools/measure/measured_run.h"
#include "headrace/tools/options/common_options.h"
#include "headrace/tools/options/options.h"
#include "headrace/tools/options/train_options.h"
#include "headrace/tools/output/json_lines.h"
#include "headrace/tools/output/output_check.h"
#include "headrace/tools/output/print.h"
#include "headrace/tools/recipes/recipes.h"
#include "headrace/tools/runs/recipe_run.h"
#include "headrace/tools/runs/run_folder.h"
#include "headrace/tools/runs/worker_run.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/model.h"
#include "headrace/train/strategy.h"

namespace headrace::tools {
namespace {

struct TrainOptions {
  CommonOptions common{.cache = "auto"};
  std::string recipe = kAutoRecipe;
  std::string precision = "auto";
  int image_size = 0;
  double validation_split = 0;
  std::string pretrained;
  std::uint64_t steps_per_epoch = 0;
  std::uint64_t stop_after_steps = 0;
  int accumulate = 1;
  ShardOptions shards;
  WorkerFlags workers;
  std::uint64_t headspace = 0;
  std::uint64_t runs = 1;
  int profile_epoch = 0;  // from 1; 0: none
  int verbose = 1;
  std::string run_dir;
  std::string trace;
  std::string strategy = "mirrored";
  ObserveOptions observe;
  CheckpointFlags checkpoints;
  std::string typed;  // the command itself
};

constexpr std::size_t kSpansAThread = 1 << 16;  // the latest are kept

std::atomic<bool> interrupted{false};

// The first Ctrl-C ends the run after the present step or test batch, the second at once. With checkpoints
// SIGTERM, SIGHUP and a closed pipe do the same: the run leaves one.
std::atomic<int> stop_signal{0};
void on_stop(int signal) {
  stop_signal = signal;
  interrupted = true;
}

void end_in_time(const TrainOptions& options) {
  if (options.checkpoints.on()) return handle_first_stop(on_stop, {SIGINT, SIGTERM, SIGHUP, SIGPIPE});
  handle_first_stop(on_stop, {SIGINT});
}

RecipeOptions recipe_options(const TrainOptions& options, DeviceGroup& devices) {
  RecipeOptions recipe{.data = options.common.data,
                       .layout = options.common.layout,
                       .columns = options.common.columns,
                       .apply_orientation = options.common.apply_orientation,
                       .global_batch = options.common.global_batch,
                       .epochs = static_cast<int>(options.common.epochs),
                       .steps_per_epoch = options.steps_per_epoch,
                       .accumulate = options.accumulate,
                       .prefetch = options.common.prefetch,
                       .image_size = options.image_size,
                       .validation_split = options.validation_split,
                       .pretrained = options.pretrained,
                       .gpu = devices[0].info().kind != DeviceKind::kCpu,
                       .input = options.common.loader()};
  if (options.common.cache != "auto") recipe.open_cache = [&options] { return options.common.open_cache(); };
  return recipe;
}

FitOptions fit_options(const TrainOptions& options, const Recipe& recipe, TrainResults& results) {
  FitOptions fit = recipe.fit;
  fit.input.seed = options.common.input.seed;  // that of this run
  fit.input.headspace = options.headspace;
  fit.verbose = options.verbose;
  fit.output = results.text_output();
  fit.stop_after_steps = options.stop_after_steps;
  fit.step.virtual_shards = options.shards.count();
  fit.stop = &interrupted;
  options.observe.apply(fit);
  options.checkpoints.apply(recipe, fit);
  fit.callbacks.push_back(
      {.on_epoch_end = [&results](const EpochReport& report, FitControl&) { results.write_epoch(report); }});
  results.attach(fit);
  if (options.profile_epoch > 0) fit.callbacks.push_back(profiled_epoch(options.profile_epoch));
  if (options.trace.empty()) return fit;
  fit.input.trace = std::make_shared<Trace>(kSpansAThread);
  fit.callbacks.push_back({.on_train_end = [file = results.trace(), trace = fit.input.trace](FitControl& control) {
    const std::string spans = trace_text(*trace, control.model().strategy().workers().get());
    if (file == nullptr) return;
    file->append(std::as_bytes(std::span(spans)));
    file->commit();
  }});
  return fit;
}

EvaluateOptions test_options(const TrainOptions& options, const Recipe& recipe, ProgressLine& line) {
  EvaluateOptions test{.input = options.common.loader(),
                       .views = recipe.views,
                       .virtual_shards = options.shards.count(),
                       .averaged_weights = options.observe.averages(),
                       .stop = &interrupted};
  test.input.in_order = true;
  if (test.input.resident == Residency::kAlways) test.input.resident = Residency::kAuto;  // read once
  if (options.verbose != 1) return test;
  test.progress = [&line](std::uint64_t done, std::uint64_t of) {
    line.show(fmt::format("testing: batch {} of {}", done, of));
  };
  return test;
}

// Returns the precision of products: bf16 if the device computes them faster, unless it is given.
Precision precision_of(const TrainOptions& options, DeviceGroup& devices) {
  if (options.precision != "auto") return options.precision == "bf16" ? Precision::kBF16 : Precision::kF32;
  return devices[0].kernels()->prefers_bf16() ? Precision::kBF16 : Precision::kF32;
}

nlohmann::ordered_json describe_run(const TrainOptions& options, const Recipe& recipe, Strategy& strategy,
                                    Precision precision) {
  nlohmann::ordered_json descriptions = nlohmann::ordered_json::array();
  for (int i = 0; i < strategy.devices().size(); ++i) {
    descriptions.push_back(strategy.device(i).info().description);
  }
  const LocalBatch batch = local_batch(recipe.train, recipe.global_batch, strategy.world_replicas());
  return {{"command", options.typed},
          {"directory", std::filesystem::current_path().string()},
          {"recipe", recipe.name},
          {"data", options.common.data.string()},
          {"devices", strategy.devices().to_string()},
          {"device_descriptions", descriptions},
          {"replicas", strategy.world_replicas()},
          {"workers", strategy.workers() ? strategy.workers()->count() : 1},
          {"precision", precision == Precision::kBF16 ? "bf16" : "f32"},
          {"global_batch", batch.global_batch},
          {"local_batch", batch.max},
          {"epochs", recipe.fit.epochs},
          {"runs", options.runs},
          {"seed", options.common.input.seed}};
}

// A run that is continued says so itself.
void announce_begin(const TrainOptions& options, const TrainResults& results) {
  const CheckpointFlags& files = options.checkpoints;
  std::vector<UnreadableCheckpoint> unreadable;  // the fit names them
  if (!files.resume || options.verbose == 0 || newest_checkpoint(files.folder, &unreadable)) return;
  print(results.text_output(), "Creating a new model\n");
}

// "test: 10,000 examples - loss: 0.2762 - accuracy: 0.9000"; in fewer columns without the count.
std::string test_line(const Evaluation& test, int columns) {
  const std::string numbers = fmt::format(" - loss: {:.4f}{}", test.loss, metric_text(test.metrics));
  const std::string whole = "test: " + count_of(static_cast<std::uint64_t>(test.examples), "example") + numbers;
  return whole.size() <= static_cast<std::size_t>(columns) ? whole : "test" + numbers;
}

// Returns std::nullopt if there are none.
std::optional<double> measured_shard_cost(const TrainOptions& options, const Recipe& recipe, const FitOptions& fit,
                                          Model& model, const TrainResults& results) {
  if (fit.step.virtual_shards == 0 || model.strategy().workers()) return std::nullopt;
  const double price = shard_price(model, recipe.train, fit);
  if (options.verbose > 0) {
    print(results.text_output(),
          "{} virtual shards: the result is that of 1 to {} replicas; a step takes {:.2f} times as long\n",
          fit.step.virtual_shards, fit.step.virtual_shards, price);
  }
  return price;
}

// Tells people, unless `people` is null, which of the net's and the file's parts did not meet.
void begin_with_pretrained(const Recipe& recipe, Model& model, std::FILE* people) {
  const PretrainedReport found = load_pretrained(model, recipe.pretrained);
  if (people == nullptr) return;
  const auto list = [](const char* what, const std::vector<std::string>& names) {
    return names.empty() ? std::string() : fmt::format("; {}: {}", what, fmt::join(names, ", "));
  };
  print(people, "Pretrained: {} from {}{}{}\n", count_of(found.loaded.size(), "variable"), recipe.pretrained,
        list("new", found.left_out), list("unused", found.unused));
}

// From the net's first values to its test accuracy; everything random follows from the options' seed.
void train_once(const TrainOptions& options, const Recipe& recipe, Strategy& strategy, TrainResults& results) {
  const Precision precision = precision_of(options, strategy.devices());
  Model model = strategy.build(recipe.net, {.seed = options.common.input.seed, .fields = recipe.train.fields()});
  Optimizer optimizer = recipe.optimizer;
  options.observe.apply(optimizer);
  model.compile({.optimizer = optimizer, .loss = recipe.loss, .metrics = recipe.metrics, .precision = precision});
  if (!recipe.pretrained.empty())
    begin_with_pretrained(recipe, model, options.verbose > 0 ? results.text_output() : nullptr);
  results.describe(recipe, model, describe_run(options, recipe, strategy, precision));

  const FitOptions fit = fit_options(options, recipe, results);
  const std::optional<double> price = measured_shard_cost(options, recipe, fit, model, results);
  announce_begin(options, results);
  ProgressLine line;
  const EvaluateOptions test = test_options(options, recipe, line);
  RecipeRun run(recipe, model, fit, test);
  end_in_time(options);  // before this there is nothing to lose
  results.write_earlier(run.history());
  const RecipeRun::Result result = run.run();
  line.clear();
  if (options.verbose > 0) {
    print(results.text_output(), "{}\n", test_line(result.test, line_columns(results.text_output())));
  }
  options.common.warn_of_caches();
  nlohmann::ordered_json last = final_line(result, model);
  last["seed"] = fit.input.seed;
  last["precision"] = precision == Precision::kBF16 ? "bf16" : "f32";
  const LocalBatch batch = local_batch(recipe.train, recipe.global_batch, strategy.world_replicas());
  last["global_batch"] = batch.global_batch;
  last["local_batch"] = batch.max;
  if (price) {
    last["virtual_shards"] = fit.step.virtual_shards;
    last["shard_price"] = *price;
  }
  if (strategy.workers()) last["workers"] = strategy.workers()->count();
  last["bad_records"] = options.common.errors.bad_records();
  results.write(last);
}

void tune_plans(DeviceGroup& devices) {
  for (int replica = 0; replica < devices.size(); ++replica) devices[replica].kernels()->tune_plans();
}

// A net for GPUs and for processors with units for bf16.
void warn_of_slow_net(const std::string& recipe, DeviceGroup& devices) {
  const bool slow = devices[0].info().kind == DeviceKind::kCpu && !devices[0].kernels()->prefers_bf16();
  if (!slow || !recipe.starts_with("cifar10-fast")) return;
  print(stderr,
        "headrace: warning: {} is made for GPUs and processors with fast bf16, such as AMX, which this one lacks, "
        "and trains slowly here; cifar10-cnn is made for CPUs\n",
        recipe);
}

void require_profiled_epoch(const TrainOptions& options, const Recipe& recipe) {
  if (options.profile_epoch <= recipe.fit.epochs) return;
  throw ConfigError(fmt::format("--profile-epoch {}: there are {}", options.profile_epoch,
                                count_of(static_cast<std::uint64_t>(recipe.fit.epochs), "epoch")),
                    "name one of them, or give more --epochs");
}

// What was trained on and, if it is other data, tested on.
void report_readings(const Recipe& recipe) {
  const std::string train = report_reading(recipe.train.reading(), true), test = recipe.test.reading();
  if (!train.starts_with(test)) report_reading(test, true);
}

// "terminated after step 12; checkpoints/checkpoint-12.safetensors holds the run"
std::string stopped_text(const TrainOptions& options, std::string text) {
  const char* ended = stop_signal == SIGTERM  ? "terminated"
                      : stop_signal == SIGHUP ? "hung up"
                                              : "stopped by a closed pipe";
  if (stop_signal != SIGINT && stop_signal != 0) text.replace(0, text.find(' '), ended);
  const CheckpointFlags& files = options.checkpoints;
  if (!files.on()) return text;
  std::vector<UnreadableCheckpoint> unreadable;
  const auto newest = files.folder.empty() ? std::nullopt : newest_checkpoint(files.folder, &unreadable);
  const std::string file = newest ? newest->string() : files.record;
  return fmt::format("{}; {} holds the run{}", text, file, files.folder.empty() ? "" : ": go on with --resume");
}

// Returns the run's warnings about its data and caches, which it printed on standard error.
std::vector<std::string> warnings_of(const TrainOptions& options, const Recipe& recipe) {
  std::vector<std::string> warnings;
  const SourceInfo& data = recipe.train.source()->info();
  for (std::string text : {describe(data.left_out), describe(data.columns)}) {
    if (!text.empty()) warnings.push_back(std::move(text));
  }
  for (const auto& cache : options.common.opened) {
    if (const std::string trouble = cache->trouble(); !trouble.empty()) warnings.push_back(trouble);
  }
  if (const std::string bad = options.common.errors.text(); !bad.empty()) warnings.push_back(bad);
  return warnings;
}

// Returns the options of a worker; the chief alone writes and prints.
TrainOptions options_of(const std::shared_ptr<Workers>& workers, TrainOptions options) {
  if (is_chief(workers)) return options;
  options.common.silence(workers->rank());
  options.verbose = 0;
  options.run_dir.clear();
  return options;
}

// The runs share the data and the devices, with all that these have loaded and chosen by then. `workers` may be
// null.
void train_as_worker(const TrainOptions& options, const std::shared_ptr<Workers>& workers) {
  const bool chief = is_chief(workers);
  options.observe.check(!options.common.json.empty() || !options.run_dir.empty() || !chief);
  if (chief) options.checkpoints.check();
  if (chief) {
    check_outputs(options.common, {{.option = "--trace", .path = options.trace},
                                   {.option = "--csv", .path = options.observe.csv},
                                   {.option = "--record", .path = options.checkpoints.record}});
  }
  if (options.runs - 1 > ~std::uint64_t{0} - options.common.input.seed) {
    throw ConfigError("--runs " + std::to_string(options.runs) + " from --seed " +
                          std::to_string(options.common.input.seed) + " needs seeds above the maximum",
                      "give a smaller --seed");
  }
  TrainResults results(
      {.json = options.common.json, .run_dir = options.run_dir, .trace = chief ? options.trace : ""});
  CommonOptions common = options.common;
  common.devices = devices_of_worker(common.devices, workers.get());
  DeviceGroup devices = common.open_devices(DeviceNeed::kKernels);
  Strategy strategy(devices, {.announce = false, .workers = workers, .standalone = true});  // the command asked
  const Recipe recipe = make_recipe(options.recipe, recipe_options(options, devices));
  if (recipe.tuned_plans) tune_plans(devices);
  warn_of_slow_net(recipe.name, devices);
  if (chief) report_readings(recipe);
  if (chief) options.common.refuse_unused(*recipe.train.source());
  require_profiled_epoch(options, recipe);
  if (options.verbose > 0) {
    const LocalBatch batch = local_batch(recipe.train, recipe.global_batch, strategy.world_replicas());
    if (options.recipe == kAutoRecipe) {
      print(results.text_output(), "Recipe: {}, which fits the data\n", recipe.name);
    }
    print(results.text_output(), "{}\n{}\n", Lines{strategy.to_string()}, batch.describe());
    for (const std::string& note : recipe.notes) print(results.text_output(), "{}\n", note);
  }
  const auto warnings = [&] { return warnings_of(options, recipe); };
  try {
    for (std::uint64_t run = 0; run < options.runs; ++run) {
      TrainOptions one = options;
      one.common.input.seed += run;
      train_once(one, recipe, strategy, results);
    }
  } catch (const Error& error) {
    const bool failed_elsewhere = dynamic_cast<const DeviceError*>(&error) != nullptr;
    const bool cancelled = error.code() == ErrorCode::kCancelled && !failed_elsewhere;
    results.end(cancelled ? "interrupted" : "failed", error.message(), warnings());
    if (!cancelled) throw;
    results.finish();
    options.common.errors.report();
    if (stop_signal == 0) throw EndedByAnother(Error(error.code(), stopped_text(options, error.message())));
    throw StoppedBySignal(stop_signal, stopped_text(options, error.message()));
  } catch (const std::exception& error) {
    results.end("failed", error.what(), warnings());
    throw;
  }
  options.common.errors.report();
  results.finish();
  results.end("finished", "", warnings());
}

void train(const TrainOptions& options) {
  require_mirrored(options.strategy);
  run_with_workers([&] { return options.workers.open(); },
                   [&](const auto& workers) { train_as_worker(options_of(workers, options), workers); });
}

}  // namespace

void add_train_command(CLI::App& program) {
  auto* command = program.add_subcommand("train", "train a recipe and evaluate it");
  auto options = std::make_shared<TrainOptions>();
  std::vector<std::string> recipes = recipe_names();
  recipes.insert(recipes.begin(), kAutoRecipe);
  add_choice(*command, "--recipe", options->recipe, "the recipe to train; auto is the one that fits the data",
             recipes)
      ->capture_default_str();
  options->common.add_to(*command);
  add_choice(*command, "--precision", options->precision,
             "the type of products and activations (sums are f32); auto is bf16 where its products are faster",
             {"auto", "f32", "bf16"})
      ->capture_default_str();
  add_number(
      *command, "--image-size", options->image_size,
      "the side that images are cut to, with recipes for images of any size; 0: the recipe's, or that of the "
      "images if they are smaller",
      {.min = 0, .max = 1024});
  add_number(
      *command, "--validation-split", options->validation_split,
      "the share of the train split that is held out for validation, with recipes for images of any size; 0: "
      "a tenth if the data have no test split, else none, and the test split validates",
      {.min = 0, .max = 0.5});
  command
      ->add_option(
          "--pretrained", options->pretrained,
          "begin with the weights of this .safetensors file, by name, as torchvision's resnet18 names them; "
          "the last layer may differ")
      ->type_name("FILE");
  add_number(*command, "--steps-per-epoch", options->steps_per_epoch,
             "optimizer steps in an epoch; 0: as the recipe says, usually one pass over the data", kSteps);
  add_number(*command, "--stop-after-steps", options->stop_after_steps,
             "end the training after this many optimizer steps; 0: at its end", kSteps);
  add_number(*command, "--headspace", options->headspace, help_of<LoaderOptions>("headspace"), kSteps);
  add_number(*command, "--runs", options->runs,
             "train N times in this process, with --seed, the seed after it and so on, each as if alone",
             {.min = 1, .max = std::numeric_limits<int>::max()});
  add_number(
      *command, "--profile-epoch", options->profile_epoch,
      "the epoch, from 1, that ncu --profile-from-start off or nsys --capture-range=cudaProfilerApi records",
      {.min = 1});
  add_number(*command, "--accumulate", options->accumulate, "batches summed into one optimizer step", {.min = 1});
  options->shards.add_to(*command);
  options->common.add_order_to(*command);
  command->get_option("--any-order")
      ->excludes(command->get_option("--deterministic"))
      ->excludes(command->get_option("--virtual-shards"));
  options->workers.add_to(*command);
  add_number(*command, "--verbose", options->verbose, "0: nothing, 1: a live progress bar, 2: a line per epoch",
             {.min = 0, .max = 2})
      ->capture_default_str();
  command
      ->add_option("--trace", options->trace,
                   "write what each thread and each device did to this file, which ui.perfetto.dev shows")
      ->type_name("FILE")
      ->excludes("--runs");
  command
      ->add_option("--run-dir", options->run_dir,
                   "folder for the history, the plan and what headrace report shows as a page; if it holds a run "
                   "already, this one gets a numbered folder inside it")
      ->type_name("FOLDER");
  options->checkpoints.add_to(*command);
  command
      ->add_option("--strategy", options->strategy,
                   "mirrored: a copy of every variable on each device, all in step; multi-worker-mirrored is the "
                   "same over the processes that a launcher started; there is no other")
      ->type_name("NAME")
      ->capture_default_str();
  options->observe.add_to(*command);
  command->callback([options, command] {
    options->typed = typed_command(*command);
    options->workers.read(*command);
    train(*options);
  });
}

}  // namespace headrace::tools
