// Decides when a fit makes a checkpoint, and has it written: by the chief alone, in whose name the calls of other
// workers only keep count.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/train/fit/callbacks/monitor.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/model.h"
#include "headrace/train/records/checkpoint_folder.h"
#include "headrace/train/records/checkpoint_writer.h"
#include "headrace/train/records/model_snapshot.h"
#include "headrace/train/records/training_state.h"
#include "headrace/train/trainer.h"

namespace headrace {

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

}  // namespace headrace
