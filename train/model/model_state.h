// What a model consists of. One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "headrace/train/model.h"
#include "headrace/train/model/mirrored_variables.h"
#include "headrace/train/model/optimizer_memory.h"
#include "headrace/train/model/variable_layout.h"

namespace headrace {

struct TrainingState;

struct ModelState {
  ModelState(Strategy& strategy, std::unique_ptr<const Graph> graph, std::uint64_t seed);

  // The options of compile(), or a ConfigError saying that `what` needs it.
  const CompileOptions& require_compiled(const char* what) const;
  // ConfigError where the model was compiled since `what` was prepared, after so many compilations.
  void require_compilation(std::uint64_t compilation, const std::string& what) const;
  // Of the next update, compiled: the optimizer's own rate and those of its groups, scale included.
  std::vector<double> learning_rates() const;

  Strategy* strategy;
  std::unique_ptr<const Graph> graph;
  VariableLayout layout;
  MirroredVariables variables;
  std::set<std::string> frozen;  // names; the layout has those of the last compile()
  std::optional<CompileOptions> compiled;
  std::uint64_t compilations = 0;          // calls of compile(): each replaces the optimizer's memory
  std::vector<OptimizerMemory> optimizer;  // by replica, from compile()
  // By variable of the layout: as what its rule keeps the first of OptimizerMemory::moments.
  std::vector<std::vector<std::string>> moment_names;
  std::uint64_t step = 0;  // updates submitted since compile()
  // Of the model's file, until a fit continues it or compile() makes it another training.
  std::shared_ptr<const TrainingState> restored = nullptr;
  InputDescription input = {};     // as save_model() has it
  std::string run = {};            // TrainingPosition::run of its fits with checkpoints, since compile()
  double learning_rate_scale = 1;  // FitControl::set_learning_rate_scale()
};

}  // namespace headrace
