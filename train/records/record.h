// A checkpoint or training record that is read: into a model's memory, by all workers, compared with the training
// that is to continue it.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/workers.h"
#include "headrace/train/checkpoints.h"
#include "headrace/train/graph.h"
#include "headrace/train/model.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/records/tensor_file.h"
#include "headrace/train/records/training_state.h"

namespace headrace {

// Loads a file's tensors into a model's memory, on all replicas at once.

enum class LoadedPart { kVariables, kAll };  // kAll: the optimizer's memory too

// Each replica reads a part of the file in its own thread, and all parts are copied to all replicas. Waits. Throws
// DataError if a tensor is missing, has another shape or is damaged: the model's values are then undefined.
// kVariables: second sets of weights become the weights.
void load_variables(const TensorFile& file, ModelState& model, LoadedPart part);

// Reads a checkpoint or training record.

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

// A checkpoint that the chief found, opened by all workers.

// Replaces `record` by the chief's, or by std::nullopt if it has none: other workers may not see its folder, so
// they are sent the file, and keep it without a name in their folder for temporary files. All workers make the
// call.
void share_record(Workers& workers, std::optional<Record>& record);

// Collects the differences between a saved training and the one that is to continue it.

class Differences {
 public:
  // Adds "seed was 5, is 6".
  void add(const std::string& what, const std::string& was, const std::string& is);
  template <typename Value>
  void compare(const std::string& what, const Value& was, const Value& is) {
    if (was != is) add(what, fmt::format("{}", was), fmt::format("{}", is));
  }
  std::size_t size() const noexcept { return texts_.size(); }

  // Throws ConfigError naming the differences from the training in the file, if there are any.
  void require_none(const std::string& file) const;

 private:
  std::vector<std::string> texts_;
};

// Compares the net in the file with that of a model: layers and their attributes.
void compare_graphs(const TensorFile& file, const Graph& graph, Differences& differ);

// Compares the options that the models are compiled with. Schedules, and other optimizer options that follow from
// the length of a run, may differ: returns whether they do.
bool compare_compiled(const TensorFile& file, const CompileOptions& options, Differences& differ);

}  // namespace headrace
