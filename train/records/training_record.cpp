#include "headrace/train/training_record.h"

#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/train/records/record.h"
#include "headrace/train/step/batch_feed.h"

namespace headrace {

TrainingRecord::TrainingRecord(Model& model, int epochs, RecordOptions options)
    : model_(&model), epochs_(epochs), options_(std::move(options)) {}

History TrainingRecord::train(const Dataset& data, int epochs, FitOptions more) {
  if (more.checkpoints) {
    throw ConfigError("a training record is its own checkpoint",
                      advice("leave out {}", named("FitOptions::checkpoints")));
  }
  more.epochs = epochs > 0 ? epochs : epochs_;
  more.checkpoints = CheckpointOptions{.record = options_.file, .input = options_.input, .views = options_.views};
  more.resume = std::exchange(trained_, true);
  return model_->fit(data, more);
}

TrainingRecord create_training_record(Model& model, const Loss& loss, const Optimizer& optimizer, int epochs,
                                      RecordOptions options) {
  model.compile({.optimizer = optimizer, .loss = loss, .metrics = options.metrics});
  return TrainingRecord(model, epochs, std::move(options));
}

namespace {

// Checks the data before they are read.
void require_fit(const Model& model, const std::filesystem::path& file, const Dataset& data) {
  try {
    const BatchFeed checked(model.state(), data.fields());
  } catch (const ConfigError& error) {
    throw ConfigError(
        data.source()->info().name + " does not fit the net of " + file.string() + ": " + error.message(),
        "give data of the kind that it was trained on, or another plan of what is done to them");
  }
}

}  // namespace

InputDescription record_input(const std::filesystem::path& file) { return Record(file).input(); }

Evaluation evaluate_record(Strategy& strategy, const std::filesystem::path& file, const SourcePtr& source,
                           const EvaluateOptions& options, const CustomParts& own) {
  const InputDescription input = record_input(file);
  require_same_classes(input, *source);
  return evaluate_record(strategy, file, described_dataset(source, input), options, own);
}

Evaluation evaluate_record(Strategy& strategy, const std::filesystem::path& file, const Dataset& data,
                           EvaluateOptions options, const CustomParts& own) {
  const Record record(file);
  if (options.views.empty()) options.views = record.input().views;
  Model model = record.build(strategy, own, Record::Use::kResults);
  require_fit(model, file, data);
  return model.evaluate(data, options);
}

Predictions predict_record(Strategy& strategy, const std::filesystem::path& file, const SourcePtr& source,
                           const EvaluateOptions& options, const CustomParts& own) {
  return predict_record(strategy, file, described_dataset(source, record_input(file)), options, own);
}

Predictions predict_record(Strategy& strategy, const std::filesystem::path& file, const Dataset& data,
                           const EvaluateOptions& options, const CustomParts& own) {
  Model model = Record(file).build(strategy, own, Record::Use::kResults);
  require_fit(model, file, data);
  return model.predict(data, options);
}

}  // namespace headrace
