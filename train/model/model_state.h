// The parts of a model, and its variables with a copy on each replica. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/buffer.h"
#include "headrace/pipeline/source.h"
#include "headrace/train/model.h"
#include "headrace/train/model/variable_layout.h"

namespace headrace {

// All calls wait for the streams they use. One thread at a time.
class MirroredVariables {
 public:
  // Fills the first replica's copy and broadcasts it.
  MirroredVariables(Strategy& strategy, const VariableLayout& layout, std::uint64_t seed);

  TensorView parameters(int replica) const;  // the whole arenas
  TensorView state(int replica) const;
  TensorView view(const Variable& variable, int replica) const;

  // Sets whether to keep a bf16 copy of each arena, in which only the weights of products (VariableSpec) are
  // valid. The copy is made here and updated by write(); other callers who change parameters must update it too.
  void keep_rounded(bool kept);
  // Updates the bf16 copies after the arenas were written in place. Waits.
  void round_again();
  TensorView rounded_parameters(int replica) const;  // undefined if none is kept
  TensorView rounded_state(int replica) const;

  std::vector<float> read(const Variable& variable, int replica) const;
  void write(const Variable& variable, std::span<const float> values);

  std::string sha256() const;
  // Throws DeviceError naming the first variable, in layer order, whose copy on a replica differs from the first
  // replica's, or whose bf16 copy is not what it rounds to; WorkersDiffer if another worker's are not the same.
  void check() const;
  // Throws Error naming the first variable whose copy on replica 0 holds a number that is not finite.
  void check_finite();

 private:
  struct Copy {
    Buffer parameters, state;
    Buffer rounded_parameters = {}, rounded_state = {};
  };

  void broadcast();
  // Returns an undefined view if no copy is kept or no product reads the variable.
  TensorView rounded_view(const Variable& variable, int replica) const;
  void round(int replica, const TensorView& values, const TensorView& rounded) const;
  void check_rounded(const Variable& variable, int replica) const;
  // Returns the first replica's arenas, in place or copied to `copy_`.
  std::vector<std::span<const float>> on_host();
  void name_what_is_not_finite() const;

  Strategy* strategy_;
  const VariableLayout* layout_;
  std::vector<Copy> copies_;
  Buffer copy_;  // pinned; made at the first on_host() that cannot work in place
};

struct TrainingState;

// An optimizer's memory from step to step on one replica: arenas laid out like the parameters'. Buffers that the
// optimizer does not use are empty.
struct OptimizerMemory {
  Buffer gradients = {};
  std::vector<Buffer> moments = {};           // Optimizer::moments()
  Buffer slow = {};                           // Lookahead's weights
  Buffer average = {}, rounded_average = {};  // WeightAverage's, and a bf16 copy if parameters have one
};

using ComparedSources = std::vector<std::weak_ptr<const Source>>;

struct ModelState {
  ModelState(Strategy& strategy, std::unique_ptr<const Graph> graph, std::uint64_t seed);

  // Returns the options of compile(). Throws ConfigError saying that `what` needs it if there was none.
  const CompileOptions& require_compiled(const char* what) const;
  // Throws ConfigError if the model was compiled again since `what` was prepared in this compilation.
  void require_compilation(std::uint64_t compilation, const std::string& what) const;
  // Throws ConfigError if variables were frozen or unfrozen since compile(). REQUIRES: compiled.
  void require_frozen_as_compiled() const;
  // Returns the rates of the next update: the optimizer's own and its groups', with the scale. REQUIRES: compiled.
  std::vector<double> learning_rates() const;

  Strategy* strategy;
  std::unique_ptr<const Graph> graph;
  VariableLayout layout;
  MirroredVariables variables;
  std::set<std::string> frozen;  // names; the layout has those of the last compile()
  std::optional<CompileOptions> compiled;
  std::uint64_t compilations = 0;          // calls of compile(): each replaces the optimizer's memory
  std::vector<OptimizerMemory> optimizer;  // by replica, from compile()
  // By variable of the layout: the names that its rule gives to the first of OptimizerMemory::moments.
  std::vector<std::vector<std::string>> moment_names;
  std::uint64_t step = 0;  // updates submitted since compile()
  // From the model's file, until a fit continues it or compile() starts another training.
  std::shared_ptr<const TrainingState> restored = nullptr;
  InputDescription input = {};     // see save_model()
  std::string run = {};            // TrainingPosition::run of its fits with checkpoints, since compile()
  double learning_rate_scale = 1;  // FitControl::set_learning_rate_scale()
  // Whether load_pretrained() turned weights to the order of a flattened (height, width, channels).
  bool turned_flattened = false;
  std::uint64_t written = 0;      // what write_variable() and load_weights() changed, hashed
  ComparedSources compared = {};  // with the other workers' content, see require_same_content()
};

}  // namespace headrace
