#include "headrace/train/fit/fit_loop.h"

#include <random>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/records/record.h"

namespace headrace {
namespace {

// Copies of a model at a time: one being written, one waiting.
constexpr std::size_t kSnapshots = 2;

// Returns the run of the model's earlier fits with checkpoints, or a new random one, the same on all workers.
std::string run_of(const Model& model) {
  if (!model.state().run.empty()) return model.state().run;
  std::random_device random;
  const std::string run = to_hex((std::uint64_t{random()} << 32) | random());
  const auto& workers = model.strategy().workers();
  return workers ? workers->all_gather(run).front() : run;
}

const CheckpointOptions& checked(const CheckpointOptions& options) {
  if (options.folder.empty() && (options.record.empty() || !options.best.empty())) {
    throw ConfigError(named("CheckpointOptions::folder") + " is empty", "say where checkpoints are to be kept");
  }
  if (options.keep < 0) {
    throw ConfigError(named("CheckpointOptions::keep", std::to_string(options.keep)) + " is negative",
                      "give 0 to keep all, or more");
  }
  return options;
}

std::optional<double> last_value(const History& history, const std::string& name) {
  const auto found = history.lists().find(name);
  if (found == history.lists().end() || found->second.empty()) return std::nullopt;
  return found->second.back();
}

}  // namespace

FitCheckpoints::FitCheckpoints(Model& model, const FitOptions& fit, const std::string& run,
                               std::optional<double> best, const std::vector<HistoryList>& lists,
                               const Trainer& trainer)
    : model_(model),
      options_(checked(*fit.checkpoints)),
      skips_nan_(fit.step.nan != NanPolicy::kIgnore),
      run_(run.empty() ? run_of(model) : run),
      trainer_(trainer),
      writer_(options_.asynchronous) {
  for (const HistoryList& list : lists) lists_.push_back(list.name);
  model.state().run = run_;
  if (is_chief()) open_files();
  const TrainingState begin;
  checkpoint_name(options_.name, name_values(begin));  // throws for an invalid name
  if (options_.best.empty()) return;
  best_.emplace("the choice of the best checkpoint", options_.best, "CheckpointOptions::best_mode",
                options_.best_mode);
  best_->begin(lists);
  best_->best = best;
}

void FitCheckpoints::open_files() {
  if (keeps()) kept_.emplace(options_.folder, run_, options_.keep);
  if (!options_.record.empty() && path_kind(options_.record) != PathKind::kPipe) {
    const FileWriter probe(options_.record);  // checked before the work: it may not be writable
  }
}

bool FitCheckpoints::is_due() {
  const std::size_t unfinished = writer_.unfinished();
  due_ = due_ || (keeps() && options_.every_steps > 0 && model_.global_step() % options_.every_steps == 0);
  return due_ && (unfinished < kSnapshots || model_.strategy().workers());
}

void FitCheckpoints::save(const TrainingState& state, const ModelSnapshot::SaveTotals& save_totals,
                          Moment moment) {
  const bool record = moment != Moment::kWithin && !options_.record.empty();
  const bool checkpoint = moment != Moment::kReturned && keeps();
  if (checkpoint || record) write(state, save_totals, {.checkpoint = checkpoint, .record = record});
}

void FitCheckpoints::save_epoch(const TrainingState& state, const EpochReport& report) {
  const std::optional<double> value = best_ ? best_->value(report) : std::nullopt;
  const bool best = value && best_->improves(*value);
  const bool checkpoint = keeps() && options_.every_steps == 0;
  if (checkpoint || best || !options_.record.empty()) {
    write(state, {}, {.checkpoint = checkpoint, .best = best, .record = !options_.record.empty()});
  }
}

void FitCheckpoints::write(TrainingState state, const ModelSnapshot::SaveTotals& save_totals, const Files& files) {
  writer_.wait_until(kSnapshots - 1);
  due_ = due_ && !files.checkpoint;
  state.position.run = run_;
  state.position.best = best_ ? best_->best : std::nullopt;
  state.position.best_of = options_.best;
  if (files.checkpoint == keeps() && files.record != options_.record.empty()) last_ = state.position;
  if (!is_chief()) return;
  RecordTexts texts = model_texts(model_.state(), model_.state().input);
  add_texts(state, texts);
  const std::filesystem::path file = options_.folder / checkpoint_name(options_.name, name_values(state));
  ModelSnapshot& snapshot = free_snapshot();
  snapshot.take(save_totals, std::move(state.totals));
  // Writes the best one first, because the others record how good it is.
  writer_.add([this, &snapshot, texts = std::move(texts), file, files, step = model_.global_step()] {
    snapshot.wait();
    if (skips_nan_ && !snapshot.is_finite()) return;
    if (files.best) {
      write_tensor_file(options_.folder / kBestCheckpoint, texts, snapshot.tensors(), Links::kReplaced);
    }
    if (files.record) write_tensor_file(options_.record, texts, snapshot.tensors());
    if (!files.checkpoint) return;
    write_tensor_file(file, texts, snapshot.tensors(), Links::kReplaced);
    kept_->add(file, step);
  });
}

ModelSnapshot& FitCheckpoints::free_snapshot() {
  if (snapshots_.size() < kSnapshots) {
    snapshots_.push_back(
        std::make_unique<ModelSnapshot>(model_.state(), trainer_.saved_sets(), trainer_.saved_set_bytes()));
    return *snapshots_.back();
  }
  return *snapshots_[next_snapshot_++ % kSnapshots];
}

NameValues FitCheckpoints::name_values(const TrainingState& state) const {
  const int within = state.position.epoch_step > 0 ? 1 : 0;
  NameValues values{{"epoch", state.position.epoch + within}, {"step", static_cast<double>(model_.global_step())}};
  for (const std::string& name : lists_) values.emplace_back(name, last_value(state.history, name));
  return values;
}

void FitCheckpoints::finish() { writer_.wait_until(0); }

bool FitCheckpoints::has(const TrainingPosition& position) const noexcept {
  return last_ && last_->epoch == position.epoch && last_->epoch_step == position.epoch_step;
}

}  // namespace headrace
