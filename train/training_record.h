// A training in one file: graph, tensors, optimizer, loss, metrics and history, for programs that know nothing of
// the model.
//
//   TrainingRecord record = create_training_record(model, sparse_categorical_crossentropy(), adam(), 10);
//   History history = record.train(data, 10);
//   ... elsewhere:
//   Evaluation evaluation = evaluate_record(strategy, "training.safetensors", open_source("data", Split::kTest));
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/model.h"

namespace HEADRACE_API headrace {

struct RecordOptions {
  std::filesystem::path file = "training.safetensors";
  std::vector<Metric> metrics = {accuracy()};
  std::optional<Dataset> input = std::nullopt;  // as in CheckpointOptions, like the views
  std::vector<View> views = {};
};

class TrainingRecord {
 public:
  // REQUIRES: the model outlives it.
  TrainingRecord(Model& model, int epochs, RecordOptions options);

  // Trains and writes the file after each epoch. `epochs` is the total; 0: that of the constructor. A further call
  // continues where the last one ended. REQUIRES: `more` has no checkpoints.
  History train(const Dataset& data, int epochs = 0, FitOptions more = {});

  const std::filesystem::path& file() const noexcept { return options_.file; }

 private:
  Model* model_;
  int epochs_;
  RecordOptions options_;
  bool trained_ = false;
};

// Compiles the model and returns its training record.
TrainingRecord create_training_record(Model& model, const Loss& loss, const Optimizer& optimizer, int epochs,
                                      RecordOptions options = {});

// Returns what a record or checkpoint says of its net's input. Throws DataError if the file cannot be used.
InputDescription record_input(const std::filesystem::path& file);

// Runs the model of a training record on a source's records, converted to the form that the file describes, or on
// a data set that already has it. An evaluation uses the file's views if `options` has none. Throws ConfigError if
// the file does not know the form (made from a plan with code in it, or by save_model() before a fit), or if an
// evaluation's labels would stand for other classes.
Evaluation evaluate_record(Strategy& strategy, const std::filesystem::path& file, const SourcePtr& source,
                           const EvaluateOptions& options = {}, const CustomParts& own = {});
Evaluation evaluate_record(Strategy& strategy, const std::filesystem::path& file, const Dataset& data,
                           EvaluateOptions options = {}, const CustomParts& own = {});
Predictions predict_record(Strategy& strategy, const std::filesystem::path& file, const SourcePtr& source,
                           const EvaluateOptions& options = {}, const CustomParts& own = {});
Predictions predict_record(Strategy& strategy, const std::filesystem::path& file, const Dataset& data,
                           const EvaluateOptions& options = {}, const CustomParts& own = {});

}  // namespace headrace
