#include "headrace/tools/options/observe_options.h"

#include <CLI/CLI.hpp>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/tools/options/options.h"
#include "headrace/train/callbacks.h"

namespace headrace::tools {
namespace {

constexpr Range<double> kLimit{.min = 0, .max = 1e30};

}  // namespace

void ObserveOptions::add_to(CLI::App& command) {
  command
      .add_option("--tensorboard", tensorboard,
                  "folder for an event file: losses, metrics, rates, waits, learning rates and norms by step")
      ->type_name("FOLDER")
      ->excludes("--runs");
  add_number(command, "--tensorboard-steps", tensorboard_steps,
             "with --tensorboard: also exactly every N steps, for which the devices wait; 0: epochs alone",
             kSteps);
  add_number(command, "--histograms", histograms,
             "with --tensorboard: how each variable's values are spread, every N epochs; 0: never", {.min = 0});
  command.add_option("--csv", csv, "file of comma-separated values, one line an epoch")
      ->type_name("FILE")
      ->excludes("--runs");
  command.add_flag(
      "--gradient-norms", gradient_norms,
      "compute the norm of all gradients and of each variable's in every step, for --tensorboard, --json "
      "and --csv");
  command.add_flag(
      "--debug-nan", debug_nan,
      "where a loss or gradient is not finite, name the operation that made the first such number; slow");
  add_number(command, "--mirror-check-every", mirror_check_every,
             "compare the hashes of all replicas' variables every N steps, and name one that differs; 0: never",
             kSteps);
  add_number(command, "--clip-norm", clip_norm, "limit the norm of all gradients together; 0: no limit", kLimit);
  add_number(command, "--clip-value", clip_value,
             "limit the magnitude of each element of the gradients; 0: no limit", kLimit);
  add_number(
      command, "--average-decay", average_decay,
      "validate and test with an average of the weights, a = N a + (1 - N) weights after each step; 0: none",
      {.min = 0, .max = 1});
}

void ObserveOptions::check(bool reports) const {
  if (gradient_norms && !reports && tensorboard.empty() && csv.empty()) {
    throw ConfigError("--gradient-norms computes norms that nothing writes down",
                      "give --json, --run-dir, --csv or --tensorboard, too");
  }
  if (tensorboard.empty() && (tensorboard_steps > 0 || histograms > 0)) {
    throw ConfigError(
        std::string(tensorboard_steps > 0 ? "--tensorboard-steps" : "--histograms") + " needs --tensorboard",
        "name the folder for the event file");
  }
  if (path_kind(tensorboard) == PathKind::kFile || path_kind(tensorboard) == PathKind::kPipe) {
    throw ConfigError("--tensorboard " + tensorboard + " is not a folder", "name a folder; it is made");
  }
}

void ObserveOptions::apply(FitOptions& fit) const {
  if (debug_nan) fit.step.nan = NanPolicy::kTrace;
  if (mirror_check_every > 0) fit.step.mirror_check_every = mirror_check_every;
  if (gradient_norms) fit.step.gradient_norms = true;
  if (averages()) fit.validate_averaged = true;
  if (!tensorboard.empty()) {
    fit.callbacks.push_back(headrace::tensorboard(
        tensorboard, {.every_steps = tensorboard_steps, .histograms_every_epochs = histograms}));
  }
  if (!csv.empty()) fit.callbacks.push_back(csv_logger(csv));
}

void ObserveOptions::apply(Optimizer& optimizer) const {
  if (clip_norm > 0) optimizer.clip.max_norm = static_cast<float>(clip_norm);
  if (clip_value > 0) optimizer.clip.max_value = static_cast<float>(clip_value);
  if (averages()) optimizer.average = {.decay = static_cast<float>(average_decay)};
}

}  // namespace headrace::tools
