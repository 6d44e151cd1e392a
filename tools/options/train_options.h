// The options of `headrace train` for checkpoints, extra output, checks, virtual shards and ending in time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "headrace/pipeline/dataset.h"
#include "headrace/tools/recipes/recipe.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/model.h"
#include "headrace/train/optimizers.h"

namespace CLI {
class App;
}

namespace headrace::tools {

// --checkpoint-dir, --checkpoint-every, --checkpoint-keep, --checkpoint-best, --checkpoint-best-mode, --resume and
// --record.
struct CheckpointFlags {
  std::string folder = {}, record = {};
  CheckpointOptions options = {};  // without these two
  bool resume = false;

  void add_to(CLI::App& command);
  bool on() const noexcept { return !folder.empty() || !record.empty(); }
  // Throws ConfigError if the folder holds another training.
  void check() const;
  void apply(const Recipe& recipe, FitOptions& fit) const;
};

struct ObserveOptions {
  std::string tensorboard;  // folder
  TensorBoardOptions tensorboard_options = {};
  std::string csv;
  StepOptions step = {};
  bool debug_nan = false;
  // For the optimizer; 0: the recipe's value.
  double clip_norm = 0, clip_value = 0;
  double average_decay = 0;

  void add_to(CLI::App& command);
  // Throws ConfigError for an option that needs another one, and for a folder that is a file. `reports`: the
  // command also writes lines of JSON.
  void check(bool reports) const;
  void apply(FitOptions& fit) const;
  void apply(Optimizer& optimizer) const;
  // Returns whether the test uses the average of the weights.
  bool averages() const noexcept { return average_decay > 0; }
};

// --deterministic and --virtual-shards.
struct ShardOptions {
  bool deterministic = false;
  std::uint64_t virtual_shards = 0;

  void add_to(CLI::App& command);
  // Returns the value for StepOptions::virtual_shards.
  int count() const noexcept;
};

// Returns the ratio of a training step's time with fit.step.virtual_shards to that without: the shortest of a few
// steps of each, with no examples, while the input is otherwise idle. Leaves the model unchanged. Takes some
// seconds for a slow net.
double shard_price(Model& model, const Dataset& data, const FitOptions& fit);

}  // namespace headrace::tools
