// One call of Model::fit: epochs of training steps, validation, callbacks, history.
#pragma once

#include <cstdint>
#include <optional>

#include "headrace/devices/base/clock.h"
#include "headrace/train/engine/callback_list.h"
#include "headrace/train/engine/evaluator.h"
#include "headrace/train/engine/progress.h"
#include "headrace/train/history.h"
#include "headrace/train/trainer.h"

namespace headrace {

class FitLoop {
 public:
  // Everything given must outlive the loop.
  FitLoop(Model& model, const Dataset& train, const FitOptions& options);

  // Before run(): as Trainer::warm_up(), with the validation.
  void warm_up();
  History run();

 private:
  struct Validation {
    DeviceGroup shards;
    Loader loader;
    Evaluator evaluator;

    Validation(Model& model, const Dataset& data, const FitOptions& options);
  };

  // The steps that were made: fewer than `steps_` where the fit was stopped within the epoch.
  std::uint64_t train_epoch(int epoch);
  EpochReport finish_epoch(int epoch, std::uint64_t steps);
  void validate(EpochReport& report);
  // What the step calls for: an exact report, a live one, none.
  void report_step(int epoch, std::uint64_t step);
  StepReport step_report(int epoch, std::uint64_t step, const MetricSums& sums) const;
  void remember(const EpochReport& report);
  bool stopped() const;
  std::uint64_t bad_records() const;

  Model& model_;
  const FitOptions& options_;
  FitControl control_;
  CallbackList callbacks_;
  Progress progress_;
  std::uint64_t steps_;  // an epoch
  bool streamed_;        // the data are a stream, which may end at any step
  bool ended_ = false;   // it did
  DeviceGroup shards_;   // each device as often as it has shards
  Loader loader_;
  Trainer trainer_;
  std::optional<Validation> validation_;
  History history_;

  Stopwatch epoch_time_;
  std::uint64_t bad_before_ = 0;  // when the epoch began
  std::uint64_t next_report_ns_ = 0;
};

}  // namespace headrace
