// A net with its variables mirrored on every replica of a strategy: compile, fit, evaluate, predict.
#pragma once

#include <cstdint>
#include <memory>
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

// Made by Strategy::build(), which must outlive it. Movable. One thread at a time.
class Model {
 public:
  explicit Model(std::unique_ptr<ModelState> state);
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  // Sets what to train for and resets the optimizer; the parameters stay. ConfigError where loss and net do not
  // fit together.
  void compile(const CompileOptions& options);

  // Trains. Throws DataError of the input, DeviceError with replica and step, Error for a loss that is not a
  // number; the model can then still be used. Not compiled, or data of another shape: ConfigError.
  History fit(const Dataset& train, const FitOptions& options = {});
  Evaluation evaluate(const Dataset& data, const EvaluateOptions& options = {});
  // Needs no compile().
  Predictions predict(const Dataset& data, const EvaluateOptions& options = {});

  const Graph& graph() const noexcept;
  Strategy& strategy() const noexcept;
  std::int64_t parameter_count() const noexcept;  // trained
  std::uint64_t global_step() const noexcept;     // optimizer steps since compile()
  // Which group of the compiled optimizer has which variables: its own rule first, its groups in their order.
  std::vector<GroupMembers> parameter_groups() const;
  // A table of layers, shapes and parameters.
  std::string summary() const;

  // "conv/weights", "batch_norm/running_mean" ..., in layer order.
  std::vector<std::string> variable_names() const;
  Shape variable_shape(const std::string& name) const;
  // What the optimizer remembers of each trained variable from step to step, since compile():
  // "conv/weights:first_moment" (or :second_moment; :slow and :average, Lookahead's and WeightAverage's weights).
  std::vector<std::string> optimizer_variable_names() const;
  // One replica's copy of a variable, or of the optimizer's; ConfigError for an unknown name.
  std::vector<float> read_variable(const std::string& name, int replica = 0) const;
  // Sets every replica's copy; of a trained variable the :slow and :average weights, too.
  void write_variable(const std::string& name, std::span<const float> values);
  // Of all variables that both models have and whose name fits the pattern (as of VariableRule::named()): the
  // values of the other's. Gives their names. ConfigError where there is none, or where a shape differs.
  std::vector<std::string> copy_variables(const Model& from, const std::string& pattern = "*");
  // From the next compile() on, the variables whose name fits the pattern (as of VariableRule::named()) stay as
  // they are, or learn again. Of layers before which none learns there is no backward pass. A layer whose running
  // statistics are frozen uses them in training, too; nothing of it or before it may learn then. Gives the names.
  // ConfigError where none fits.
  std::vector<std::string> freeze(const std::string& pattern);
  std::vector<std::string> unfreeze(const std::string& pattern);
  std::vector<std::string> frozen_variables() const;
  // The variable's place in a replica's device memory, valid as long as the model. To be read: a device may
  // compute with a bf16 copy, which only write_variable() changes too.
  TensorView variable(const std::string& name, int replica) const;

  // Of all variables (parameters and state) in layer order; of replica 0.
  std::string weights_sha256() const;
  // Compares all replicas' copies, :slow and :average among them, and the bf16 copies that their products read;
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
// The model's variables may be written in between; after compile() run() refuses. One thread.
class PreparedFit {
 public:
  // Starts the input engine, which reads ahead, and records the steps. Errors are those of fit(). The model must
  // outlive it.
  PreparedFit(Model& model, const Dataset& train, const FitOptions& options = {});
  ~PreparedFit();
  PreparedFit(const PreparedFit&) = delete;
  PreparedFit& operator=(const PreparedFit&) = delete;

  // Runs every recorded step once without examples, the validation's too: a GPU loads a kernel on its first use.
  // Changes no result.
  void warm_up();

  // Of a fit that is continued (FitOptions::resume), before run(): the epochs that were made before. Else empty.
  const History& history() const noexcept;

  // Once: a second call is a ConfigError.
  History run();

 private:
  std::unique_ptr<FitLoop> loop_;
};

}  // namespace headrace
