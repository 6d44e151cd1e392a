// A recipe from its prepared data to its test accuracy, and the time that takes.
#pragma once

#include <functional>
#include <optional>

#include "headrace/tools/recipes/recipe.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/model.h"

namespace headrace::tools {

class RecipeRun {
 public:
  struct Result {
    Evaluation test;
    // Values that depend on data, training, evaluation; not what was prepared or loaded, to the devices' memory
    // too.
    double seconds = 0;
  };

  // Prepares it. Replicas with memory of their own are warmed up as well: a GPU loads a kernel and chooses an
  // algorithm when it first needs one, and that is not training. All arguments must outlive it.
  RecipeRun(const Recipe& recipe, Model& model, const FitOptions& fit, const EvaluateOptions& test);

  // Of a run that is continued (FitOptions::resume), before run(): the epochs that were made before.
  const History& history() const { return fit_->history(); }

  // Once. Error(kCancelled) where the options' `stop` ended training or test.
  Result run();

 private:
  void warm_up();
  Evaluation evaluate();

  const Recipe& recipe_;
  Model& model_;
  const FitOptions& fit_options_;
  const EvaluateOptions& test_options_;
  std::function<void()> initialise_;  // empty where nothing depends on data
  std::optional<PreparedFit> fit_;
  std::optional<Evaluator> test_;  // at once where it is warmed up, else after the training
};

}  // namespace headrace::tools
