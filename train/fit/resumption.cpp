#include "headrace/train/fit/fit_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/file.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/text.h"
#include "headrace/train/records/checkpoint_folder.h"
#include "headrace/train/records/record.h"
#include "headrace/train/strategy.h"

namespace headrace {

namespace {

constexpr std::size_t kMaxPlansNamed = 4;

void compare_data(const std::string& what, const DataIdentity& was, const DataIdentity& is, Differences& differ) {
  if (was.fingerprint == is.fingerprint) return;
  const std::size_t before = differ.size();
  for (std::size_t i = 0; i < std::max(was.stages.size(), is.stages.size()); ++i) {
    const auto stage = [i](const DataIdentity& of) { return i < of.stages.size() ? of.stages[i] : "none"; };
    differ.compare(fmt::format("stage {} of {}", i + 1, what), stage(was), stage(is));
  }
  if (differ.size() == before)
    differ.add("what " + what + " hold", to_hex(was.fingerprint), to_hex(is.fingerprint));
}

// Prints permitted changes from how the training was begun.
void say_changes(const TrainingPosition& at, const FitOptions& options, bool schedules) {
  if (options.verbose == 0) return;
  const auto epochs = [](int count) { return count_of(static_cast<std::uint64_t>(count), "epoch"); };
  if (at.epoch >= options.epochs) {
    fmt::print(options.output, "Nothing is left to train: {} done, {} wanted\n", epochs(at.epoch), options.epochs);
    return;
  }
  std::string text;
  if (at.epochs != options.epochs) text = fmt::format(" for {} instead of {}", epochs(options.epochs), at.epochs);
  if (schedules) text += fmt::format("{} with other schedules than before", text.empty() ? "" : ",");
  if (!text.empty()) fmt::print(options.output, "Continuing{}\n", text);
}

// A training that fails at bad records has met none so far, so it may continue under either policy.
void compare_policies(const std::optional<OnError>& was, OnError is, Differences& differ) {
  if (!was || *was == OnError::kFail || is == OnError::kFail) return;
  differ.compare("what is done with a bad record", std::string(to_string(*was)), std::string(to_string(is)));
}

}  // namespace

Resumption::Resumption(Model& model, const FitOptions& options, const Work& work) {
  if (!options.resume) return;
  find(model, options);
  if (state_ != nullptr) check(model.state(), options, work);
}

void Resumption::find(Model& model, const FitOptions& options) {
  Workers* workers = model.strategy().workers().get();
  state_ = std::exchange(model.state().restored, nullptr);
  if (workers != nullptr) workers->require_equal("restored training", state_ != nullptr ? "restored" : "none");
  if (state_ != nullptr) return;
  if (!options.checkpoints) {
    throw ConfigError(
        named("FitOptions::resume") + " is set, but nothing says from what",
        joined({advice("name the folder in {}", named("FitOptions::checkpoints")), "restore the model first"}));
  }
  if (model.strategy().is_chief()) find_newest(options);
  if (workers != nullptr) share_record(*workers, record_);
  if (!record_) return;
  if (options.verbose > 0 && model.strategy().is_chief()) {
    fmt::print(options.output, "Restoring from {}\n", printable(record_->file().path().native()));
    std::fflush(options.output);
  }
  state_ = std::make_shared<const TrainingState>(*record_->training());
}

void Resumption::find_newest(const FitOptions& options) {
  const CheckpointOptions& files = *options.checkpoints;
  if (!files.folder.empty()) {
    FoundCheckpoint found = find_newest_checkpoint(files.folder, /*trained=*/true);
    warn_of(found.unreadable, options.output == stdout ? stderr : options.output);
    record_ = std::move(found.record);
  }
  if (!record_ && path_kind(files.record) == PathKind::kFile) record_.emplace(files.record);
  if (record_ && !record_->training()) record_.reset();
}

void Resumption::check(const ModelState& model, const FitOptions& options, const Work& work) const {
  const TrainingPosition& at = state_->position;
  Differences differ;
  const bool schedules = record_ && compare_compiled(record_->file(), model.require_compiled("training"), differ);
  differ.compare("accumulate", at.accumulate, options.step.accumulate);
  differ.compare("steps in an epoch", at.steps_per_epoch, work.steps);
  differ.compare("virtual shards", at.virtual_shards, options.step.virtual_shards);
  differ.compare("seed", at.seed, options.input.seed);
  compare_policies(at.on_error, options.input.errors.on_error, differ);
  if (at.data) {
    compare_data("the data", *at.data, work.data, differ);
    differ.compare("validation", at.validation_data.has_value(), work.validation.has_value());
  }
  if (at.validation_data && work.validation) {
    compare_data("the validation's data", *at.validation_data, *work.validation, differ);
  }
  if (!at.best_of.empty() && options.checkpoints && !options.checkpoints->best.empty()) {
    differ.compare("what the best checkpoint is chosen by", at.best_of, options.checkpoints->best);
  }
  if (record_) compare_graphs(record_->file(), *model.graph, differ);
  differ.require_none(record_ ? record_->file().path().string() : "the file that the model was restored from");
  say_changes(at, options, schedules);
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
  model.restored = nullptr;  // this fit continues it
}

void Resumption::compare_plans(const std::map<std::string, std::string>& plans, const FitOptions& options) const {
  if (!continues()) return;
  std::string text;
  std::size_t others = 0;
  for (const auto& [problem, was] : state_->position.plans) {
    const auto is = plans.find(problem);
    if (is == plans.end() || is->second == was || ++others > kMaxPlansNamed) continue;
    text += fmt::format("{}{} was {}, is {}", text.empty() ? "" : "; ", printable(problem), printable(was),
                        printable(is->second));
  }
  if (others == 0) return;
  if (others > kMaxPlansNamed) text += fmt::format("; and {} more", others - kMaxPlansNamed);
  std::FILE* output = options.output == stdout ? stderr : options.output;
  fmt::print(
      output,
      "headrace: warning: the training continues with other plans, so that its bits differ from those of one "
      "that was not interrupted: {}\n",
      text);
  std::fflush(output);
}

}  // namespace headrace
