// Where a training stands beside the values of tensors: what a checkpoint holds of the fit that made it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "headrace/pipeline/loader.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/records/tensor_file.h"

namespace headrace {

// Which data a training is of.
struct DataIdentity {
  std::uint64_t fingerprint = 0;         // Dataset::fingerprint()
  std::vector<std::string> stages = {};  // as Dataset::explain() has them, without those that change no batch
};
DataIdentity identity_of(const Dataset& data);

struct TrainingPosition {
  int epoch = 0;                 // in progress, from 0
  std::uint64_t epoch_step = 0;  // optimizer steps made in it
  int epochs = 0;
  bool ended = false;  // by a callback, after an epoch
  std::uint64_t steps_per_epoch = 0;
  int accumulate = 1;
  int world_replicas = 0;
  int virtual_shards = 0;
  std::uint64_t seed = 0;
  LoaderState loader = {};
  std::optional<LoaderState> validation = {};  // after the last whole epoch
  std::uint64_t bad_records = 0;               // of the epoch so far
  double learning_rate_scale = 1;
  std::optional<GradientNorms> gradient_norms = {};  // of the epoch's last step, where that is made
  std::optional<double> best = {};                   // of the metric that the best checkpoint is chosen by
  std::string best_of = {};                          // that metric; empty: none
  // Nothing in files of versions that did not write it; of the validation also where there was none.
  std::optional<OnError> on_error = {};
  std::optional<DataIdentity> data = {}, validation_data = {};
  std::map<std::string, std::string> plans = {};  // Kernels::chosen_plans() of the first replica
  std::string run = {};                           // tells this training from others that use the folder
};

struct TrainingState {
  TrainingPosition position = {};
  History history = {};
  std::string callbacks = "{}";  // CallbackList::save()
  // The sums of the epoch so far as they lie in the memory of each shard (RunningTotals), which is the replica's
  // where there are no virtual ones; empty at an epoch's start.
  std::vector<std::vector<std::byte>> totals = {};
};

// All but the totals, which are tensors.
void add_texts(const TrainingState& state, RecordTexts& texts);
// Nothing where the file holds no training. DataError where it cannot be read.
std::optional<TrainingState> read_training_state(const TensorFile& file);

// "totals:0"
std::string totals_name(std::size_t shard);

}  // namespace headrace
