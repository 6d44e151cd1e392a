// Checkpoints of a training, and models made from them.
//
//   Model model = restore_or_create(strategy, "checkpoints", [&] { return compiled_model(strategy); });
//   model.fit(train, {.epochs = 10, .checkpoints = CheckpointOptions{.folder = "checkpoints"}, .resume = true});
//
// Run twice, the second run continues where the first one ended, with the same bits. train/records/FORMAT.md says
// what a file holds.
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

// What a net is fed with, as data: how a program that does not know the model makes it of a data set.
struct InputDescription {
  // JSON as pipeline/PLAN.md has it, with the source {"named": "data"}. Empty: there is none.
  std::string plan = {};
  // Why there is no plan: nothing was trained yet, or what of the plan cannot be written down.
  std::string reason = "the model was saved before it was trained";
  std::vector<View> views = {};  // of an evaluation
  // By field with more than one element, the type of the source's data: "uint8" and so on, images as they are
  // decoded. No plan says what a program did to its data beforehand, but the type often shows it. Empty: not
  // known.
  std::map<std::string, std::string> types = {};
  // The class names that labels stand for, where the data have them, and how many classes there are; 0: not known.
  std::vector<std::string> classes = {};
  std::uint64_t label_count = 0;
  // The file is of a version that wrote no plan, and its program said nothing of the input: then data are taken as
  // they are.
  bool assumed = false;
};

// What evaluates, on other data, the model that is trained or evaluated on these: Dataset::evaluation_json(), or
// why it cannot be.
InputDescription describe_input(const Dataset& data, std::vector<View> views = {});

// As a JSON object, and back, those of earlier versions included. ConfigError with the place for what cannot be.
std::string to_json(const InputDescription& input);
InputDescription input_description_from_json(std::string_view json);

// ConfigError where the source has class names, and others than those: its labels would stand for other classes.
void require_same_classes(const InputDescription& input, const Source& source);

// The source's records in order, as the plan treats them; `global_batch` as in PlanOptions. ConfigError where
// there is no plan, or where it or the types do not fit the source.
Dataset described_dataset(const SourcePtr& source, const InputDescription& input, std::int64_t global_batch = 0);

class Model;
class Strategy;

struct CheckpointOptions {
  // Made where it is missing; empty: `record` alone. One fit() at a time has it: another's is a DataError, in this
  // process or another. What others put under a checkpoint's name, a link for one, is replaced.
  std::filesystem::path folder = {};
  // A file that is replaced after each epoch and at the end: the training record, of the same format.
  std::filesystem::path record = {};
  // A file's name, without ".safetensors": {epoch} is the epoch in which it is made, from 1, {step} the model's
  // optimizer steps, {val_loss} and any other list of the history its last value, "none" before there is one;
  // {val_loss:.4f} with a format. Of two names alike the later file replaces the other.
  std::string name = "checkpoint-{step}";
  // After every this many optimizer steps of the model, and at the end of the training; 0: after every epoch.
  // Always between two optimizer steps, so that no accumulated batch is pending.
  std::uint64_t every_steps = 0;
  int keep = 3;           // the latest of this training that stay in the folder; 0: all
  std::string best = {};  // a list of the history, as "val_loss": its best epoch is kept as best.safetensors, too
  Better best_mode = Better::kAuto;
  // Written by a thread of its own from a copy of the variables. Training waits only at the end of an epoch where
  // the two checkpoints before it are still being written; one that is due within an epoch is made some steps
  // later then. False: training waits for each.
  bool asynchronous = true;
  // The data set that says how programs which do not know the model make its input of others (describe_input());
  // nothing: FitOptions::validation, and where there is none the training's.
  std::optional<Dataset> input = std::nullopt;
  std::vector<View> views = {};  // such programs evaluate with these
};

// Your own losses, metrics, layers and update rules, which a record names but cannot hold.
struct OwnParts {
  std::vector<Loss> losses = {};  // of one term each
  std::vector<Metric> metrics = {};
  LayerMakers layers = {};
  UpdateMakers rules = {};
};

// A checkpoint that cannot be used.
struct UnreadableCheckpoint {
  std::filesystem::path file = {};
  std::string why = {};  // a DataError's message, which names the file
};

// The newest complete checkpoint in the folder, by its optimizer steps; nothing where there is none, nor a folder.
// Those that are damaged are passed over: each is added to `unreadable`, or named on standard error where that is
// null. DataError naming them where none can be read. Other programs' files are no checkpoints.
std::optional<std::filesystem::path> newest_checkpoint(const std::filesystem::path& folder,
                                                       std::vector<UnreadableCheckpoint>* unreadable = nullptr);

// Whether a training was begun in the folder, readable or not. A fit() keeps no checkpoints there without
// FitOptions::resume, but for the model that was trained into it by the process's last fit().
bool holds_training(const std::filesystem::path& folder);

// The model as it was saved: its graph, variables, compile options and what its optimizer kept. A fit() of it with
// FitOptions::resume continues the training. DataError where the file cannot be used.
Model restore_model(Strategy& strategy, const std::filesystem::path& file, const OwnParts& own = {});

// The model of newest_checkpoint(), or create()'s: says which, "Restoring from FILE" or "Creating a new model", on
// standard output.
Model restore_or_create(Strategy& strategy, const std::filesystem::path& folder,
                        const std::function<Model()>& create, const OwnParts& own = {});

// The file's variables become those of a model that was built otherwise; its second sets of weights follow, all
// else stays. DataError where one is missing or has another shape.
void load_weights(Model& model, const std::filesystem::path& file);

// Writes the model as it is now, with nothing about a training. It must be compiled. `input` as
// CheckpointOptions has it; nothing: as of the model's last fit or Trainer, of the file that it was restored from,
// or, where these say nothing, of its last evaluation.
void save_model(const Model& model, const std::filesystem::path& file,
                const std::optional<Dataset>& input = std::nullopt);

}  // namespace headrace
