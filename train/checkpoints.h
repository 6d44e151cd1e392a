// Saves checkpoints of a training and restores models from them.
//
//   Model model = restore_or_create(strategy, "checkpoints", [&] { return compiled_model(strategy); });
//   model.fit(train, {.epochs = 10, .checkpoints = CheckpointOptions{.folder = "checkpoints"}, .resume = true});
//
// Run twice, the second run continues where the first ended, with the same bits. See train/records/FORMAT.md for
// the file format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/layers.h"
#include "headrace/train/losses.h"
#include "headrace/train/metrics.h"
#include "headrace/train/update_rules.h"

namespace HEADRACE_API headrace {

// A net's input as data: how a program that does not know the model produces it from a data set.
struct InputDescription {
  // JSON in the format of pipeline/PLAN.md, with the source {"named": "data"}; empty if there is no plan.
  std::string plan = {};
  // Why there is no plan: nothing was trained yet, or part of the plan cannot be written down.
  std::string reason = "the model was saved before it was trained";
  std::vector<View> views = {};  // used in an evaluation
  // By field with more than one element, the type of the source's data: "uint8" and so on; for images, their type
  // after decoding. No plan says what a program did to its data beforehand, but the type often shows it. Empty:
  // not known.
  std::map<std::string, std::string> types = {};
  // The class names that labels stand for, if the data have them, and the number of classes (0: not known).
  std::vector<std::string> classes = {};
  std::uint64_t label_count = 0;
};

// Describes the input for evaluating, on other data, a model that is trained or evaluated on `data`:
// Dataset::evaluation_json(), or the reason why there is none.
InputDescription describe_input(const Dataset& data, std::vector<View> views = {});

// Converts to a JSON object and back, also from earlier versions. Throws ConfigError naming the place of an error.
std::string to_json(const InputDescription& input);
InputDescription input_description_from_json(std::string_view json);

// Throws ConfigError if the source's class names differ from the input's: its labels would mean other classes.
void require_same_classes(const InputDescription& input, const Source& source);

// Returns the source's records in order, processed as in the plan; for `global_batch` see PlanOptions. Throws
// ConfigError if there is no plan, or if it or the types do not fit the source.
Dataset described_dataset(const SourcePtr& source, const InputDescription& input, std::int64_t global_batch = 0);

class Model;
class Strategy;

struct CheckpointOptions {
  // Created if missing; empty: only `record` is written. One fit() at a time may use it: another one, in this
  // process or any other, gets a DataError. A foreign file or link under a checkpoint's name is replaced.
  std::filesystem::path folder = {};
  // A file that is replaced after each epoch and at the end: the training record, in the same format. It ends with
  // the variables that the model has when fit() returns, such as those of the best epoch that early_stopping()
  // restores.
  std::filesystem::path record = {};
  std::string name = "checkpoint-{step}";
  std::uint64_t every_steps = 0;
  int keep = 3;
  std::string best = {};
  Better best_mode = Better::kAuto;
  bool asynchronous = true;
  // The data set that tells programs which do not know the model how to produce its input from other data (see
  // describe_input()). std::nullopt: FitOptions::validation, or the training data if there is none.
  std::optional<Dataset> input = std::nullopt;
  std::vector<View> views = {};  // the views with which such programs evaluate

  // Those of the checkpoints' folder.
  void each_field(OptionVisitor& visit) {
    visit("name", name,
          "A file's name without \".safetensors\": {epoch} is the one-based epoch in which it is made, {step} the "
          "model's optimizer steps, {val_loss} or any other list of the history its last value, \"none\" if there "
          "is "
          "none yet; {val_loss:.4f} adds a format. A later file replaces an earlier one of the same name.");
    visit(
        "every_steps", every_steps,
        "Saves after every this many optimizer steps of the model, always between two of them, and at the end of "
        "the training; 0: after every epoch.");
    visit("keep", keep, "The latest checkpoints of this training that stay in the folder; 0: all.");
    visit("best", best,
          "A list of the history, such as \"val_loss\", whose best epoch is also kept as "
          "best.safetensors.");
    visit("best_mode", best_mode, "Which values are best; \"auto\": as the metric says.");
    visit("asynchronous", asynchronous,
          "Whether a background thread writes a copy of the variables. Training then waits only at the end of an "
          "epoch if the previous two checkpoints are still being written; one due within an epoch is made some "
          "steps "
          "later. False: training waits for each checkpoint.");
  }
};

// Custom losses, metrics, layers and update rules, which a file names but cannot hold.
struct CustomParts {
  std::vector<Loss> losses = {};  // one term each
  std::vector<Metric> metrics = {};
  LayerMakers layers = {};
  UpdateMakers rules = {};
};

// A checkpoint that cannot be used.
struct UnreadableCheckpoint {
  std::filesystem::path file = {};
  std::string why = {};  // a DataError's message, which names the file
};

// Returns the newest complete checkpoint in the folder, by optimizer steps, or std::nullopt if there is none or no
// folder. Skips damaged ones and adds each to `unreadable`, or names it on standard error if that is null. Throws
// DataError naming them if none can be read. Ignores files of other programs.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& folder,
                                                       std::vector<UnreadableCheckpoint>* unreadable = nullptr);

// Returns whether a training was started in the folder, readable or not. Without FitOptions::resume, a fit()
// refuses such a folder unless this process's last fit() trained the same model into it.
bool holds_training(const std::filesystem::path& folder);

// Restores a saved model: its graph, variables, compile options and optimizer state. Its fit() with
// FitOptions::resume continues the training. Throws DataError if the file cannot be used.
Model restore_model(Strategy& strategy, const std::filesystem::path& file, const CustomParts& own = {});

// Restores the model from newest_checkpoint(), or calls create() if there is none. Prints "Restoring from FILE" or
// "Creating a new model" on standard output. Of several workers only the chief looks into the folder and prints;
// it sends the file to the others. All make the call.
Model restore_or_create(Strategy& strategy, const std::filesystem::path& folder,
                        const std::function<Model()>& create, const CustomParts& own = {});

// Copies the file's variables into a model that was built by other means; the second sets of weights follow, all
// else stays. Throws DataError if a variable is missing or has another shape.
void load_weights(Model& model, const std::filesystem::path& file);

// The result of load_pretrained().
struct PretrainedReport {
  std::vector<std::string> loaded = {};    // variables
  std::vector<std::string> left_out = {};  // variables that keep their values: those of the last layers
  std::vector<std::string> unused = {};    // tensors of the file that the model has no variable for
};

// Which of the model's variables and the file's tensors must match.
enum class PretrainedMatch {
  kAllButLast,  // all variables but those of the last layers; the file may have more tensors
  kAll,         // all variables and all tensors of the file
  kAny,         // variables without a tensor keep their values; the file may have more tensors
};

struct PretrainedOptions {
  // Returns the name by which to look for a variable's tensor, from its name in the file; empty: leaves it out.
  std::function<std::string(const std::string&)> rename = {};
  PretrainedMatch match = PretrainedMatch::kAllButLast;
};

// Copies weights that another program trained from a .safetensors file (f32, f16 or bf16), or those of a record. A
// variable's tensor has its name or PyTorch's: for "conv1/weights" "conv1.weight", for a norm "bn1.weight",
// "bn1.bias", "bn1.running_mean" and "bn1.running_var"; PyTorch's filters (out, in, height, width) are turned,
// and so is what follows a flattened image, there (channels, height, width). A model's last layers may be missing
// in the file or have another shape: they keep their values; options.match says otherwise. Throws DataError if the
// file cannot be used, if any other variable is missing or has another shape, or if it is not known in which order
// PyTorch has a variable's features; with kAll it lists all that do not match. The model is then unchanged.
PretrainedReport load_pretrained(Model& model, const std::filesystem::path& file,
                                 const PretrainedOptions& options = {});

// Writes the model in its current state, without training progress; of several workers only the chief does. For
// `input` see CheckpointOptions; std::nullopt: the input of the model's last fit or Trainer, or of the file that
// it was restored from, or, if these say nothing, of its last evaluation. REQUIRES: the model is compiled.
void save_model(const Model& model, const std::filesystem::path& file,
                const std::optional<Dataset>& input = std::nullopt);

}  // namespace headrace
