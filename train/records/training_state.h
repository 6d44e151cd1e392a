// The state of a training besides the values of tensors: what a checkpoint holds of the fit that made it.
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

// Identifies the data of a training.
struct DataIdentity {
  std::uint64_t fingerprint = 0;         // Dataset::fingerprint()
  std::vector<std::string> stages = {};  // see Dataset::explain(); without those that change no batch
};
DataIdentity identity_of(const Dataset& data);

struct TrainingPosition {
  int epoch = 0;                 // in progress, zero-based
  std::uint64_t epoch_step = 0;  // optimizer steps completed in it
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
  std::optional<GradientNorms> gradient_norms = {};  // of the epoch's last step, once it is made
  std::optional<double> best = {};                   // of the metric that selects the best checkpoint
  std::string best_of = {};                          // that metric; empty: none
  // std::nullopt in files of versions that did not write it; the validation's also if there was none.
  std::optional<OnError> on_error = {};
  std::optional<DataIdentity> data = {}, validation_data = {};
  std::map<std::string, std::string> plans = {};  // Kernels::chosen_plans() of the first replica
  std::string run = {};                           // tells this training from others that use the folder
};

struct TrainingState {
  TrainingPosition position = {};
  History history = {};
  std::string callbacks = "{}";  // CallbackList::save()
  // The sums of the epoch so far as they lie in each shard's memory (RunningTotals), which is the replica's
  // without virtual shards; empty at the start of an epoch.
  std::vector<std::vector<std::byte>> totals = {};
};

// Adds everything except the totals, which are tensors.
void add_texts(const TrainingState& state, RecordTexts& texts);
// Returns std::nullopt if the file holds no training. Throws DataError if it cannot be read.
std::optional<TrainingState> read_training_state(const TensorFile& file);

// Returns the name of a shard's totals: "totals:0".
std::string totals_name(std::size_t shard);

}  // namespace headrace
