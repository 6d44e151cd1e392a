#include "headrace/tools/options/checkpoint_options.h"

#include <CLI/CLI.hpp>

#include "headrace/devices/base/error.h"
#include "headrace/tools/options/options.h"
#include "headrace/train/checkpoints.h"

namespace headrace::tools {

void CheckpointFlags::add_to(CLI::App& command) {
  auto* into = command
                   .add_option("--checkpoint-dir", folder,
                               "folder for checkpoints; SIGTERM, SIGHUP and the first Ctrl-C then leave one, too")
                   ->type_name("FOLDER")
                   ->excludes("--runs");
  add_number(command, "--checkpoint-every", every, "a checkpoint every N optimizer steps; 0: every epoch", kSteps)
      ->needs(into);
  add_number(command, "--checkpoint-keep", keep, "the latest checkpoints that stay; 0: all", {.min = 0})
      ->needs(into)
      ->capture_default_str();
  auto* by =
      command
          .add_option("--checkpoint-best", best, "keep the epoch that is best by this, too, as best.safetensors")
          ->type_name("METRIC")
          ->needs(into);
  add_choice(command, "--checkpoint-best-mode", best_mode,
             "whether a larger or a smaller value is better; auto: what the metric says", {"auto", "max", "min"})
      ->needs(by)
      ->capture_default_str();
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

Better CheckpointFlags::better() const {
  if (best_mode == "auto") return Better::kAuto;
  return best_mode == "max" ? Better::kHigher : Better::kLower;
}

void CheckpointFlags::check() const {
  if (folder.empty() || resume || !holds_training(folder)) return;
  throw ConfigError("--checkpoint-dir " + folder + " holds checkpoints of an earlier training",
                    "give --resume to go on with it, or name another folder");
}

void CheckpointFlags::apply(const Recipe& recipe, FitOptions& fit) const {
  if (!on()) return;
  fit.checkpoints = CheckpointOptions{.folder = folder,
                                      .record = record,
                                      .every_steps = every,
                                      .keep = keep,
                                      .best = best,
                                      .best_mode = better(),
                                      .input = recipe.test,
                                      .views = recipe.views};
  fit.resume = resume;
}

}  // namespace headrace::tools
