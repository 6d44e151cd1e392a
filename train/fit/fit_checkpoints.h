// When a fit makes a checkpoint, and what becomes of it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/train/fit_options.h"
#include "headrace/train/model.h"
#include "headrace/train/records/checkpoint_folder.h"
#include "headrace/train/records/checkpoint_name.h"
#include "headrace/train/records/checkpoint_writer.h"
#include "headrace/train/records/model_snapshot.h"
#include "headrace/train/records/training_state.h"
#include "headrace/train/trainer.h"

namespace headrace {

// One thread, the fit's. Each call throws what a file written before it met with.
class FitCheckpoints {
 public:
  // `run` and `best` as in TrainingPosition, of the training that is continued; an empty run is a new one.
  // ConfigError for options that cannot be, DataError where the record cannot be written. The folder is a
  // TrainingFolder. Model and trainer must outlive it.
  FitCheckpoints(Model& model, const FitOptions& fit, const std::string& run, std::optional<double> best,
                 const Trainer& trainer);

  // After an optimizer step: whether to save now. Within an epoch only where a copy can be taken without waiting;
  // otherwise it stays due.
  bool is_due();

  // Takes a copy in stream order and has it written. `save_totals`: empty at the start of an epoch. `ends`: the
  // fit does, so that the record is written, too.
  void save(const TrainingState& state, const ModelSnapshot::SaveTotals& save_totals, bool ends);
  // The same after an epoch, for what is due then: a checkpoint, the best one, the record.
  void save_epoch(const TrainingState& state);
  // Waits until everything is written.
  void finish();

  // The last position that was saved is this one.
  bool has(const TrainingPosition& position) const noexcept;

 private:
  ModelSnapshot& free_snapshot();
  NameValues name_values(const TrainingState& state) const;
  // Which of the files are written.
  struct Files {
    bool checkpoint = false, best = false, record = false;
  };
  void write(TrainingState state, const ModelSnapshot::SaveTotals& save_totals, const Files& files);
  bool is_better(double value) const;
  bool improves(const TrainingState& state);

  Model& model_;
  CheckpointOptions options_;
  bool skips_nan_;                    // the fit ends where a variable is no number, and keeps what was before that
  std::vector<std::string> metrics_;  // lists of the history that a name may ask for
  std::string run_;
  std::optional<double> best_;
  std::optional<TrainingPosition> last_;
  bool due_ = false;
  const Trainer& trainer_;
  std::vector<std::unique_ptr<ModelSnapshot>> snapshots_;  // in turn
  std::size_t next_snapshot_ = 0;
  std::optional<KeptCheckpoints> kept_;  // the writer's; nothing without a folder
  CheckpointWriter writer_;              // last: it waits for what uses the others
};

}  // namespace headrace
