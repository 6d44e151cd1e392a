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
    // Values that depend on data, training, evaluation; without preparation and loading, also to the devices'
    // memory.
    double seconds = 0;
  };

  // Prepares the run. Also warms up replicas with separate memory: a GPU loads a kernel and chooses an algorithm
  // at first use, and that is not training. REQUIRES: all arguments outlive this.
  RecipeRun(const Recipe& recipe, Model& model, const FitOptions& fit, const EvaluateOptions& test);

  // Returns, before run(), the earlier epochs of a continued run (FitOptions::resume).
  const History& history() const { return fit_->history(); }

  // Throws Error(kCancelled) if the options' `stop` ended training or test. REQUIRES: called once.
  Result run();

 private:
  void warm_up();
  void require_not_stopped() const;
  Evaluation evaluate();

  const Recipe& recipe_;
  Model& model_;
  const FitOptions& fit_options_;
  const EvaluateOptions& test_options_;
  std::function<void()> initialise_;  // empty if nothing depends on data
  std::optional<PreparedFit> fit_;
  std::optional<Evaluator> test_;  // created at once if it is warmed up, else after the training
};

}  // namespace headrace::tools
