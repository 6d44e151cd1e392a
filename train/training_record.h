// A training that is one file: graph, tensors, optimizer, loss, metrics and history, for programs that know
// nothing of the model.
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
  std::optional<Dataset> input = std::nullopt;  // as CheckpointOptions, and so the views
  std::vector<View> views = {};
};

class TrainingRecord {
 public:
  // The model must outlive it.
  TrainingRecord(Model& model, int epochs, RecordOptions options);

  // Trains, and writes the file after each epoch. `epochs` in all, 0: those of the record. Called again it goes on
  // from where the last call ended. `more` has no checkpoints.
  History train(const Dataset& data, int epochs = 0, FitOptions more = {});

  const std::filesystem::path& file() const noexcept { return options_.file; }

 private:
  Model* model_;
  int epochs_;
  RecordOptions options_;
  bool trained_ = false;
};

// Compiles the model.
TrainingRecord create_training_record(Model& model, const Loss& loss, const Optimizer& optimizer, int epochs,
                                      RecordOptions options = {});

// What a record or checkpoint says of its net's input. DataError where the file cannot be used.
InputDescription record_input(const std::filesystem::path& file);

// The record's model on a source's records, brought into the form that the record describes, or on a data set that
// has it. The record's views are used for an evaluation where `options` has none. ConfigError where the record
// does not know the form: one made of a plan with code in it, or by save_model() before a fit; and where an
// evaluation's labels would stand for other classes.
Evaluation evaluate_record(Strategy& strategy, const std::filesystem::path& file, const SourcePtr& source,
                           const EvaluateOptions& options = {}, const OwnParts& own = {});
Evaluation evaluate_record(Strategy& strategy, const std::filesystem::path& file, const Dataset& data,
                           EvaluateOptions options = {}, const OwnParts& own = {});
Predictions predict_record(Strategy& strategy, const std::filesystem::path& file, const SourcePtr& source,
                           const EvaluateOptions& options = {}, const OwnParts& own = {});
Predictions predict_record(Strategy& strategy, const std::filesystem::path& file, const Dataset& data,
                           const EvaluateOptions& options = {}, const OwnParts& own = {});

}  // namespace headrace
