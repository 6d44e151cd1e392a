#include "headrace/train/training_record.h"

#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/train/records/record.h"

namespace headrace {

TrainingRecord::TrainingRecord(Model& model, int epochs, RecordOptions options)
    : model_(&model), epochs_(epochs), options_(std::move(options)) {}

History TrainingRecord::train(const Dataset& data, int epochs, FitOptions more) {
  if (more.checkpoints) {
    throw ConfigError("a training record is its own checkpoint", "leave out FitOptions::checkpoints");
  }
  more.epochs = epochs > 0 ? epochs : epochs_;
  more.checkpoints = CheckpointOptions{.record = options_.file, .input = options_.input};
  more.resume = std::exchange(trained_, true);
  return model_->fit(data, more);
}

TrainingRecord create_training_record(Model& model, const Loss& loss, const Optimizer& optimizer, int epochs,
                                      RecordOptions options) {
  model.compile({.optimizer = optimizer, .loss = loss, .metrics = options.metrics});
  return TrainingRecord(model, epochs, std::move(options));
}

Evaluation evaluate_record(Strategy& strategy, const std::filesystem::path& file, const SourcePtr& source,
                           EvaluateOptions options, const OwnParts& own) {
  const Record record(file);
  const InputDescription input = record.input();
  if (options.views.empty()) options.views = input.views;
  Model model = record.build(strategy, own, Record::Use::kResults);
  return model.evaluate(described_dataset(source, input), options);
}

Predictions predict_record(Strategy& strategy, const std::filesystem::path& file, const SourcePtr& source,
                           const EvaluateOptions& options, const OwnParts& own) {
  const Record record(file);
  Model model = record.build(strategy, own, Record::Use::kResults);
  return model.predict(described_dataset(source, record.input()), options);
}

}  // namespace headrace
