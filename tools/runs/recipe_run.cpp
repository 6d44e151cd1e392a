#include "headrace/tools/runs/recipe_run.h"

#include <algorithm>
#include <string>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/train/strategy.h"

namespace headrace::tools {

RecipeRun::RecipeRun(const Recipe& recipe, Model& model, const FitOptions& fit, const EvaluateOptions& test)
    : recipe_(recipe), model_(model), fit_options_(fit), test_options_(test) {
  if (recipe.load) recipe.load();
  fit_.emplace(model, recipe.train, fit);
  if (recipe.initialise) initialise_ = recipe.initialise(model);
  if (!model.strategy().device(0).info().host_memory) warm_up();
}

void RecipeRun::warm_up() {
  test_.emplace(model_, recipe_.test, test_options_);
  fit_->warm_up();
  test_->warm_up();
  if (initialise_) initialise_();
}

RecipeRun::Result RecipeRun::run() {
  const Stopwatch clock;
  if (initialise_) initialise_();
  fit_->run();
  if (stopped()) {
    throw Error(ErrorCode::kCancelled, "interrupted after step " + std::to_string(model_.global_step()));
  }
  const Evaluation test = evaluate();
  return {.test = test, .seconds = clock.seconds()};
}

// Of several workers, each may be told to stop.
bool RecipeRun::stopped() const {
  const bool mine = fit_options_.stop != nullptr && *fit_options_.stop;
  const auto& workers = model_.strategy().workers();
  if (!workers) return mine;
  return std::ranges::count(workers->all_gather(mine ? "stop" : ""), "stop") > 0;
}

Evaluation RecipeRun::evaluate() {
  if (!test_) {
    fit_.reset();  // a laptop has not the memory for both
    test_.emplace(model_, recipe_.test, test_options_);
  }
  try {
    return test_->evaluate();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCancelled) throw;
    throw Error(ErrorCode::kCancelled,
                "interrupted during the test after step " + std::to_string(model_.global_step()));
  }
}

}  // namespace headrace::tools
