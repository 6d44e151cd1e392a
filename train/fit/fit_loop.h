// The loop of a PreparedFit: epochs of training steps, validation, callbacks, history.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "headrace/devices/base/clock.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/fit/callback_list.h"
#include "headrace/train/fit/class_weighting.h"
#include "headrace/train/fit/fit_checkpoints.h"
#include "headrace/train/fit/progress.h"
#include "headrace/train/fit/resumption.h"
#include "headrace/train/fit/same_work.h"
#include "headrace/train/fit/worker_agreement.h"
#include "headrace/train/trainer.h"

namespace headrace {

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
