// A fit: the saved training that it continues, the checkpoints that it writes, its loop.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/fit/callback_list.h"
#include "headrace/train/fit/callbacks/monitor.h"
#include "headrace/train/fit/options_of_fit.h"
#include "headrace/train/fit/progress.h"
#include "headrace/train/fit/worker_agreement.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/records/checkpoint_folder.h"
#include "headrace/train/records/model_snapshot.h"
#include "headrace/train/records/record.h"
#include "headrace/train/records/training_state.h"
#include "headrace/train/trainer.h"

namespace headrace {

// The saved training from which a fit continues.

class Resumption {
 public:
  // The work of a fit, besides its model and options.
  struct Work {
    std::uint64_t steps;  // per epoch
    const DataIdentity& data;
    const std::optional<DataIdentity>& validation;
  };
  // See FitOptions::resume.
  Resumption(Model& model, const FitOptions& options, const Work& work);

  bool continues() const noexcept { return state_ != nullptr; }
  // Return a new training's values if the fit does not continue one.
  TrainingPosition position() const;
  std::optional<LoaderState> loader() const;
  std::optional<LoaderState> validation() const;
  History history() const;

  // Restores the saved state into the model if the fit continues one and it is not restored already.
  void restore(ModelState& model) const;
  // Warns if plans differ from the saved ones. Call after the first step of a continued training.
  void compare_plans(const std::map<std::string, std::string>& plans, const FitOptions& options) const;
  const std::string& callbacks() const noexcept { return state_->callbacks; }
  const std::vector<std::vector<std::byte>>& totals() const noexcept { return state_->totals; }

 private:
  void find(Model& model, const FitOptions& options);
  void find_newest(const FitOptions& options);
  // Throws ConfigError naming all differences that change the result.
  void check(const ModelState& model, const FitOptions& options, const Work& work) const;

  std::optional<Record> record_;  // the newest checkpoint, if the model is not restored yet
  std::shared_ptr<const TrainingState> state_;
};

// Decides when a fit makes a checkpoint, and has it written: by the chief alone, in whose name the calls of other
// workers only keep count.

// For the fit's thread. Each call throws the error of a file written before it.
class FitCheckpoints {
 public:
  // `run` and `best`: see TrainingPosition, of the continued training; an empty `run` is the model's or a new one.
  // `lists`: of the history. Throws ConfigError for invalid options, DataError if the record cannot be written.
  // REQUIRES: the folder is a TrainingFolder; model and trainer outlive this object.
  FitCheckpoints(Model& model, const FitOptions& fit, const std::string& run, std::optional<double> best,
                 const std::vector<HistoryList>& lists, const Trainer& trainer);

  // Returns whether to save now, after an optimizer step. Within an epoch only if a copy can be taken without
  // waiting; otherwise it stays due. Of several workers all save at once.
  bool is_due();

  // Takes a copy in stream order and queues it for writing. `save_totals`: empty at the start of an epoch, and if
  // `state` has the totals.
  enum class Moment {
    kWithin,    // a checkpoint
    kEnd,       // a checkpoint and the record
    kReturned,  // the record again, which is to have what callbacks did to the variables at the end
  };
  void save(const TrainingState& state, const ModelSnapshot::SaveTotals& save_totals, Moment moment);
  // Saves what is due after an epoch: a checkpoint, the best one, the record.
  void save_epoch(const TrainingState& state, const EpochReport& report);
  // Waits until everything is written.
  void finish();

  // Returns whether the last saved position is this one.
  bool has(const TrainingPosition& position) const noexcept;

 private:
  ModelSnapshot& free_snapshot();
  NameValues name_values(const TrainingState& state) const;
  // Selects the files to write.
  struct Files {
    bool checkpoint = false, best = false, record = false;
  };
  void write(TrainingState state, const ModelSnapshot::SaveTotals& save_totals, const Files& files);
  bool keeps() const noexcept { return !options_.folder.empty(); }
  bool is_chief() const noexcept { return model_.strategy().is_chief(); }
  void open_files();

  Model& model_;
  CheckpointOptions options_;
  bool skips_nan_;                  // does not write values that are not finite, which end the fit
  std::vector<std::string> lists_;  // of the history, which a name may use
  std::string run_;
  std::optional<Monitor> best_;  // if the best is kept
  std::optional<TrainingPosition> last_;
  bool due_ = false;
  const Trainer& trainer_;
  std::vector<std::unique_ptr<ModelSnapshot>> snapshots_;  // used in turn
  std::size_t next_snapshot_ = 0;
  std::optional<KeptCheckpoints> kept_;  // for the chief's writer; std::nullopt without a folder
  CheckpointWriter writer_;              // last: it waits for what uses the others
};

// The loop of a PreparedFit: epochs of training steps, validation, callbacks, history.

class FitLoop {
 public:
  // REQUIRES: the model is compiled and outlives the loop.
  FitLoop(Model& model, const Dataset& train, const FitOptions& options);

  // See PreparedFit.
  void warm_up();
  History run();
  const History& history() const noexcept { return history_; }
  const Strategy& strategy() const noexcept { return model_.strategy(); }

 private:
  struct Validation {
    DeviceGroup shards;
    Loader loader;
    Evaluator evaluator;

    Validation(Model& model, const Dataset& data, const FitOptions& options,
               const std::optional<LoaderState>& start);
  };

  // What each worker adds to a report.
  struct WorkerShare {
    StepTimes times;
    double training_seconds = 0, seconds = 0;
    std::uint64_t bad_records = 0;
  };

  void check_model() const;
  SharedWork work() const;
  // Restores the state with which a continued fit begins: variables, callbacks' state.
  void restore();
  void run_epochs();
  // Returns the number of steps made: fewer than `steps_` if the fit was stopped within the epoch.
  std::uint64_t train_epoch(int epoch);
  // Begins the epoch, or continues it if it was begun before.
  void begin_epoch(int epoch);
  // Returns the state of the fit: position_, with the loaders' current state; of several workers within an epoch,
  // with the totals of all.
  TrainingState state_now();
  void save_now(FitCheckpoints::Moment moment);
  // Returns the choices of the first replica; the others choose alike.
  std::map<std::string, std::string> chosen_plans() const;
  std::optional<TrainingFolder> taken_folder() const;
  std::optional<GradientNorms> last_gradient_norms() const;
  // Returns whether fewer steps than planned were made, or the validation did not finish.
  bool is_cut(const EpochReport& report) const;
  EpochReport finish_epoch(int epoch, std::uint64_t steps);
  void validate(EpochReport& report);
  // Makes the report that the step calls for: an exact one, a live one, or none.
  void report_step(int epoch, std::uint64_t step);
  StepReport step_report(int epoch, std::uint64_t step, const MetricSums& sums) const;
  // Returns what each worker has by rank; of one process its own alone. All workers make the call.
  std::vector<WorkerShare> gather(const WorkerShare& mine) const;
  // Agrees with the other workers whether to stop.
  void agree();
  bool is_interrupted() const;
  void remember(const EpochReport& report);
  // Returns whether to make no further step; of several workers, as they agreed.
  bool stopped() const;
  std::uint64_t bad_records() const;
  // See FitControl::input_stats().
  LoaderStats input_stats() const;

  Model& model_;
  const FitOptions options_;
  std::uint64_t compilation_;  // of the model, when it was prepared
  bool begun_ = false;
  ClassWeighting class_weighting_;
  FitControl control_;
  CallbackList callbacks_;
  WorkerAgreement agreement_;
  Progress progress_;
  std::uint64_t steps_;                   // per epoch
  bool streamed_;                         // the data are a stream, which may end at any step
  bool ended_ = false;                    // the stream has ended
  std::optional<TrainingFolder> folder_;  // if there are checkpoints, until they are written
  DataIdentity data_;
  std::optional<DataIdentity> validation_data_;
  std::vector<SourcePtr> sources_;
  Resumption resumption_;
  TrainingPosition position_;  // except the loaders'
  bool plans_compared_ = false;
  DeviceGroup shards_;  // each device once per shard
  Loader loader_;
  Trainer trainer_;
  std::optional<Validation> validation_;
  History history_;
  std::optional<FitCheckpoints> checkpoints_;

  Stopwatch epoch_time_;
  std::uint64_t bad_before_ = 0;  // when the epoch began, less those of its part before a resumption
  // Made in this epoch before a resumption.
  std::uint64_t earlier_steps_ = 0;
  std::int64_t earlier_examples_ = 0;
  std::optional<LoaderState> validated_;  // the validation's loader after its last whole pass
  std::uint64_t next_report_ns_ = 0;
  // The loader's counters after the epoch's first step, and what they counted from there to its last one.
  std::optional<LoaderStats> first_step_input_, epoch_input_;
};

}  // namespace headrace
