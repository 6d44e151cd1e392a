// A net with its variables mirrored on every replica of a strategy: compile, fit, evaluate, predict.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/pipeline/dataset.h"
#include "headrace/train/callbacks.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/graph.h"
#include "headrace/train/losses.h"
#include "headrace/train/metrics.h"
#include "headrace/train/optimizers.h"

namespace headrace {  // inside the floor
class FitLoop;
struct ModelState;
}  // namespace headrace

namespace HEADRACE_API headrace {

class Strategy;

struct CompileOptions {
  Optimizer optimizer = adam();
  Loss loss = sparse_categorical_crossentropy();
  std::vector<Metric> metrics = {accuracy()};
  Precision precision = Precision::kF32;
};

// The task of an output.
struct OutputTask {
  std::string layer;
  std::optional<ResultTask> task = std::nullopt;  // std::nullopt: unknown; metrics that depend on it are refused
};

// Made by Strategy::build(). Movable. Use from one thread at a time. REQUIRES: the strategy outlives it.
class Model {
 public:
  explicit Model(std::unique_ptr<ModelState> state);
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  // Sets the training objective and resets the optimizer; the parameters stay. Throws ConfigError if loss and net
  // do not fit together.
  void compile(const CompileOptions& options);

  // Trains. Throws DataError of the input, DeviceError with replica and step, Error if the loss is not a number;
  // the model stays usable. Throws ConfigError if it is not compiled or if the data have another shape.
  History fit(const Dataset& train, const FitOptions& options = {});
  Evaluation evaluate(const Dataset& data, const EvaluateOptions& options = {});
  // Does not need compile().
  Predictions predict(const Dataset& data, const EvaluateOptions& options = {});

  const Graph& graph() const noexcept;
  Strategy& strategy() const noexcept;
  std::int64_t parameter_count() const noexcept;  // trained parameters
  std::uint64_t global_step() const noexcept;     // optimizer steps since compile()
  // Returns the variables of each group of the compiled optimizer: its own rule first, then its groups in order.
  std::vector<GroupMembers> parameter_groups() const;
  // Returns what each output's results are, by the compiled loss and the layers; before compile() by the layers
  // alone.
  std::vector<OutputTask> tasks() const;
  // Returns a table of layers, shapes and parameters and, of a compiled model, tasks() and the loss.
  std::string summary() const;

  // Returns "conv/weights", "batch_norm/running_mean" ..., in layer order.
  std::vector<std::string> variable_names() const;
  Shape variable_shape(const std::string& name) const;
  // Returns the names of what the optimizer keeps for each trained variable since compile():
  // "conv/weights:first_moment" (or :second_moment; :slow and :average: weights of Lookahead and WeightAverage).
  std::vector<std::string> optimizer_variable_names() const;
  // Returns one replica's copy of a variable or optimizer variable. Throws ConfigError if the name is unknown.
  std::vector<float> read_variable(const std::string& name, int replica = 0) const;
  // Sets every replica's copy and, for a trained variable, also the :slow and :average weights.
  void write_variable(const std::string& name, std::span<const float> values);
  // Copies from `from` the values of all variables that both models have and whose name matches the pattern (see
  // VariableRule::named()). Returns the copied names. Throws ConfigError if there are none or if a shape differs.
  std::vector<std::string> copy_variables(const Model& from, const std::string& pattern = "*");
  // Freezes or unfreezes the variables whose name matches the pattern (see VariableRule::named()), from the next
  // compile() on. The backward pass stops at the first layer that learns. A layer whose running statistics are
  // frozen uses them in training, too; neither it nor a layer before it may learn then. Until that compile() fit()
  // and a Trainer throw ConfigError. Returns the names. Throws ConfigError if none matches.
  std::vector<std::string> freeze(const std::string& pattern);
  std::vector<std::string> unfreeze(const std::string& pattern);
  std::vector<std::string> frozen_variables() const;
  // Returns the variable's place in a replica's device memory, valid as long as the model. Read only: a device may
  // compute with a bf16 copy, which only write_variable() keeps in step.
  TensorView variable(const std::string& name, int replica) const;

  // Returns the hash of replica 0's variables (parameters and state), in layer order.
  std::string weights_sha256() const;
  // Compares all replicas' copies, including :slow and :average and the bf16 copies used in products. Throws
  // DeviceError naming the first variable that differs, and the replica.
  void check_mirrored() const;

  // For the trainer.
  ModelState& state() const noexcept { return *state_; }

 private:
  std::unique_ptr<ModelState> state_;
};

// Model::fit() in two parts: preparation and recording, then the training itself. For callers who time the
// training alone, or start it at a given moment.
//
//   PreparedFit fit(model, train, {.epochs = 8});
//   fit.warm_up();
//   ... the clock starts ...
//   History history = fit.run();
//
// The model's variables may be written in between; run() fails after a compile(). Use from one thread.
class PreparedFit {
 public:
  // Starts the input engine, which reads ahead, and records the steps. Throws the errors of fit(). REQUIRES: the
  // model outlives it.
  PreparedFit(Model& model, const Dataset& train, const FitOptions& options = {});
  ~PreparedFit();
  PreparedFit(const PreparedFit&) = delete;
  PreparedFit& operator=(const PreparedFit&) = delete;

  // Runs every recorded step once without examples, including the validation's: a GPU loads a kernel on its first
  // use. Changes no result.
  void warm_up();

  // Returns, before run(), the earlier epochs of a fit that is continued (FitOptions::resume); otherwise empty.
  const History& history() const noexcept;

  // Trains. Throws ConfigError if called a second time.
  History run();

 private:
  std::unique_ptr<FitLoop> loop_;
};

}  // namespace headrace
