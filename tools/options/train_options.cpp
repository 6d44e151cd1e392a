#include "headrace/tools/options/train_options.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <limits>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/kernels.h"
#include "headrace/tools/options/options.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/strategy.h"
#include "headrace/train/trainer.h"

namespace headrace::tools {
namespace {

constexpr Range<double> kFieldSteps{.min = 0, .max = 9.2e18};

}  // namespace

void CheckpointFlags::add_to(CLI::App& command) {
  auto* into = command
                   .add_option("--checkpoint-dir", folder,
                               "folder for checkpoints; SIGTERM, SIGHUP and the first Ctrl-C then leave one, too")
                   ->type_name("FOLDER")
                   ->excludes("--runs");
  add_field(command, options, {.field = "every_steps", .name = "--checkpoint-every", .range = kFieldSteps})
      ->needs(into);
  add_field(command, options, {.field = "keep", .name = "--checkpoint-keep", .range = {.min = 0}})->needs(into);
  auto* by = add_field(command, options, {.field = "best", .name = "--checkpoint-best"});
  by->type_name("METRIC")->needs(into);
  add_field(command, options, {.field = "best_mode", .name = "--checkpoint-best-mode"})->needs(by);
  command
      .add_flag("--resume", resume,
                "go on from the newest checkpoint in the folder, if there is one, with the options it was begun "
                "with; there may be more --epochs, and other --devices and threads")
      ->needs(into);
  command
      .add_option("--record", record,
                  "write the training record to this file: headrace evaluate and predict need that file and data")
      ->type_name("FILE")
      ->excludes("--runs");
}

void CheckpointFlags::check() const {
  if (folder.empty() || resume || !holds_training(folder)) return;
  throw ConfigError("--checkpoint-dir " + folder + " holds checkpoints of an earlier training",
                    "give --resume to go on with it, or name another folder");
}

void CheckpointFlags::apply(const Recipe& recipe, FitOptions& fit) const {
  if (!on()) return;
  fit.checkpoints = options;
  fit.checkpoints->folder = folder;
  fit.checkpoints->record = record;
  fit.checkpoints->input = recipe.test;
  fit.checkpoints->views = recipe.views;
  fit.resume = resume;
}

namespace {

constexpr Range<double> kLimit{.min = 0, .max = 1e30};

constexpr int kUsualShards = 8;
constexpr int kTimedSteps = 10;
constexpr double kTimedSeconds = 0.4;
// With and without in turn: beside other load OpenMP's threads need a while to find out how to wait.
constexpr int kRounds = 4;
constexpr double kRoundsSeconds = 4;  // no further round begins after these

double step_seconds(Model& model, const Dataset& data, const FitOptions& fit, int virtual_shards) {
  Strategy& strategy = model.strategy();
  const int each = std::max(1, virtual_shards / strategy.world_replicas());
  DeviceGroup shards = strategy.devices().repeated(each);
  LoaderOptions input = fit.input;
  input.world = strategy.world().repeated(each);
  input.trace = nullptr;
  Loader loader(data, shards, input);
  Trainer trainer(strategy, model, loader,
                  {.step = {.accumulate = fit.step.accumulate, .virtual_shards = virtual_shards}});
  trainer.warm_up();  // memory is touched for the first time
  double shortest = std::numeric_limits<double>::max();
  const Stopwatch all;
  for (int i = 0; i < kTimedSteps && (i == 0 || all.seconds() < kTimedSeconds); ++i) {
    const Stopwatch one;
    trainer.warm_up();
    shortest = std::min(shortest, one.seconds());
  }
  return shortest;
}

}  // namespace

void ObserveOptions::add_to(CLI::App& command) {
  command
      .add_option("--tensorboard", tensorboard,
                  "folder for an event file: losses, metrics, rates, waits, learning rates and norms by step")
      ->type_name("FOLDER")
      ->excludes("--runs");
  add_field(command, tensorboard_options,
            {.field = "every_steps", .name = "--tensorboard-steps", .range = kFieldSteps});
  add_field(command, tensorboard_options,
            {.field = "histograms_every_epochs", .name = "--histograms", .range = {.min = 0}});
  command.add_option("--csv", csv, "file of comma-separated values, one line an epoch")
      ->type_name("FILE")
      ->excludes("--runs");
  add_field(command, step, {.field = "gradient_norms"});
  command.add_flag(
      "--debug-nan", debug_nan,
      "where a loss or gradient is not finite, name the operation that made the first such number; slow");
  add_field(command, step, {.field = "mirror_check_every", .range = kFieldSteps});
  add_number(command, "--clip-norm", clip_norm, "limit the norm of all gradients together; 0: no limit", kLimit);
  add_number(command, "--clip-value", clip_value,
             "limit the magnitude of each element of the gradients; 0: no limit", kLimit);
  add_number(
      command, "--average-decay", average_decay,
      "validate and test with an average of the weights, a = N a + (1 - N) weights after each step; 0: none",
      {.min = 0, .max = 1});
}

void ObserveOptions::check(bool reports) const {
  if (step.gradient_norms && !reports && tensorboard.empty() && csv.empty()) {
    throw ConfigError("--gradient-norms computes norms that nothing writes down",
                      "give --json, --run-dir, --csv or --tensorboard, too");
  }
  const auto& [every_steps, histograms_every_epochs] = tensorboard_options;
  if (tensorboard.empty() && (every_steps > 0 || histograms_every_epochs > 0)) {
    throw ConfigError(
        std::string(every_steps > 0 ? "--tensorboard-steps" : "--histograms") + " needs --tensorboard",
        "name the folder for the event file");
  }
  if (path_kind(tensorboard) == PathKind::kFile || path_kind(tensorboard) == PathKind::kPipe) {
    throw ConfigError("--tensorboard " + tensorboard + " is not a folder", "name a folder; it is made");
  }
}

void ObserveOptions::apply(FitOptions& fit) const {
  if (debug_nan) fit.step.nan = NanPolicy::kTrace;
  if (step.mirror_check_every > 0) fit.step.mirror_check_every = step.mirror_check_every;
  if (step.gradient_norms) fit.step.gradient_norms = true;
  if (averages()) fit.validate_averaged = true;
  if (!tensorboard.empty()) {
    fit.callbacks.push_back(headrace::tensorboard(tensorboard, tensorboard_options));
  }
  if (!csv.empty()) fit.callbacks.push_back(csv_logger(csv));
}

void ObserveOptions::apply(Optimizer& optimizer) const {
  if (clip_norm > 0) optimizer.clip.max_norm = static_cast<float>(clip_norm);
  if (clip_value > 0) optimizer.clip.max_value = static_cast<float>(clip_value);
  if (averages()) optimizer.average = {.decay = static_cast<float>(average_decay)};
}

void ShardOptions::add_to(CLI::App& command) {
  command.add_flag("--deterministic", deterministic,
                   "the same result with 1, 2, 4 or 8 replicas: each batch is divided into 8 virtual shards");
  add_number(command, "--virtual-shards", virtual_shards,
             "the same with this many shards, a power of two: the maximum number of replicas",
             {.min = 1, .max = kernel::kMaxSummed});
}

int ShardOptions::count() const noexcept {
  if (virtual_shards > 0) return static_cast<int>(virtual_shards);
  return deterministic ? kUsualShards : 0;
}

double shard_price(Model& model, const Dataset& data, const FitOptions& fit) {
  double plain = std::numeric_limits<double>::max(), sharded = plain;
  const Stopwatch all;
  for (int round = 0; round < kRounds && (round == 0 || all.seconds() < kRoundsSeconds); ++round) {
    plain = std::min(plain, step_seconds(model, data, fit, 0));
    sharded = std::min(sharded, step_seconds(model, data, fit, fit.step.virtual_shards));
  }
  return sharded / plain;
}

}  // namespace headrace::tools
