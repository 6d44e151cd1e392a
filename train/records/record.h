// A checkpoint or training record as what it stands for.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "headrace/train/checkpoints.h"
#include "headrace/train/model.h"
#include "headrace/train/records/tensor_file.h"
#include "headrace/train/records/training_state.h"

namespace headrace {

// Format, graph, compile state and input: what does not change while a model is trained, but for its step.
RecordTexts model_texts(const ModelState& model, const InputDescription& input);

// Immutable. Errors are DataErrors that name the file, those about a program's own parts included.
class Record {
 public:
  // kUnsupported for a version of the format that is not known.
  explicit Record(const std::filesystem::path& path);

  const TensorFile& file() const noexcept { return file_; }
  std::uint64_t step() const noexcept { return step_; }
  const std::optional<TrainingState>& training() const noexcept { return training_; }
  InputDescription input() const;

  // A model of the file's graph, compiled, with its variables; kAll: as it was when it was saved.
  enum class Use { kResults, kAll };
  Model build(Strategy& strategy, const OwnParts& own, Use use) const;
  // A model that was built and compiled by its own program becomes what was saved.
  void load_into(ModelState& model) const;
  // Reads every byte. DataError where one is damaged.
  void verify() const;

 private:
  void take_over(ModelState& model) const;

  TensorFile file_;
  std::uint64_t step_ = 0;
  std::optional<TrainingState> training_;
};

}  // namespace headrace
