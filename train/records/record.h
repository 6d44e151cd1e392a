// Reads a checkpoint or training record.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "headrace/train/checkpoints.h"
#include "headrace/train/model.h"
#include "headrace/train/records/tensor_file.h"
#include "headrace/train/records/training_state.h"

namespace headrace {

// Returns format, graph, compile state and input: all that training leaves unchanged, except the step.
RecordTexts model_texts(const ModelState& model, const InputDescription& input);

// Immutable. Errors are DataErrors that name the file, including those about custom parts.
class Record {
 public:
  // Throws DataError kUnsupported for an unknown version of the format.
  explicit Record(const std::filesystem::path& path);

  const TensorFile& file() const noexcept { return file_; }
  std::uint64_t step() const noexcept { return step_; }
  const std::optional<TrainingState>& training() const noexcept { return training_; }
  InputDescription input() const;

  // build() returns a model of the file's graph, compiled, with its variables; kAll: in its whole saved state.
  enum class Use { kResults, kAll };
  Model build(Strategy& strategy, const CustomParts& own, Use use) const;
  // Restores the saved state into a model that its own program built and compiled.
  void load_into(ModelState& model) const;
  // Reads every byte. Throws DataError if one is damaged.
  void verify() const;

 private:
  void take_over(ModelState& model) const;

  TensorFile file_;
  std::uint64_t step_ = 0;
  std::optional<TrainingState> training_;
};

}  // namespace headrace
