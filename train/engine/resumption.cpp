#include "headrace/train/engine/resumption.h"

#include <fmt/format.h>

#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/printable.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/records/checkpoint_folder.h"
#include "headrace/train/records/same_optimizer.h"

namespace headrace {

Resumption::Resumption(Model& model, const FitOptions& options, std::uint64_t steps) {
  if (!options.resume) return;
  find(model, options);
  if (record_) check_same_optimizer(record_->file(), model.state().require_compiled("training").optimizer);
  if (state_ != nullptr) check(options, steps);
}

void Resumption::find(Model& model, const FitOptions& options) {
  state_ = std::exchange(model.state().restored, nullptr);
  if (state_ != nullptr) return;
  if (!options.checkpoints) {
    throw ConfigError(
        named("FitOptions::resume") + " is set, but nothing says from what",
        joined({advice("name the folder in {}", named("FitOptions::checkpoints")), "restore the model first"}));
  }
  const CheckpointOptions& files = *options.checkpoints;
  if (!files.folder.empty()) record_ = open_newest_checkpoint(files.folder);
  if (!record_ && path_kind(files.record) == PathKind::kFile) record_.emplace(files.record);
  if (record_ && !record_->training()) record_.reset();
  if (!record_) return;
  if (options.verbose > 0) {
    fmt::print(options.output, "Restoring from {}\n", printable(record_->file().path().native()));
    std::fflush(options.output);
  }
  state_ = std::make_shared<const TrainingState>(*record_->training());
}

void Resumption::check(const FitOptions& options, std::uint64_t steps) const {
  const TrainingPosition& at = state_->position;
  const auto same = [](const char* name, std::uint64_t was, std::uint64_t is) {
    if (was == is) return;
    throw ConfigError(fmt::format("the training to continue has {} = {}, this one {}", name, was, is),
                      "continue it with what it was begun with, or begin another one in another folder");
  };
  same("accumulate", static_cast<std::uint64_t>(at.accumulate),
       static_cast<std::uint64_t>(options.step.accumulate));
  same("steps in an epoch", at.steps_per_epoch, steps);
  same("virtual shards", static_cast<std::uint64_t>(at.virtual_shards),
       static_cast<std::uint64_t>(options.step.virtual_shards));
  same("seed", at.seed, options.input.seed);
}

TrainingPosition Resumption::position() const { return continues() ? state_->position : TrainingPosition{}; }

std::optional<LoaderState> Resumption::loader() const {
  if (!continues()) return std::nullopt;
  return state_->position.loader;
}

std::optional<LoaderState> Resumption::validation() const {
  if (!continues()) return std::nullopt;
  return state_->position.validation;
}

History Resumption::history() const { return continues() ? state_->history : History(); }

void Resumption::restore(ModelState& model) const {
  if (!record_) return;
  record_->load_into(model);
  model.restored = nullptr;  // this fit is what continues it
}

}  // namespace headrace
