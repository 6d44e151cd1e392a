#include "headrace/tools/runs/recipe_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

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
  try {
    fit_->run();
  } catch (const WorkerInterrupted&) {  // as all say now
  }
  require_not_stopped();
  const Evaluation test = evaluate();
  return {.test = test, .seconds = clock.seconds()};
}

// Of several workers, each may be told to stop.
void RecipeRun::require_not_stopped() const {
  const bool mine = fit_options_.stop != nullptr && *fit_options_.stop;
  const std::string when = fmt::format("after step {}", model_.global_step());
  const auto& workers = model_.strategy().workers();
  std::vector<std::string> all{mine ? "stop" : ""};
  if (workers) all = workers->all_gather(all.front(), "the end of the training");
  if (mine) throw Error(ErrorCode::kCancelled, "interrupted " + when);
  const auto first = std::ranges::find(all, "stop");
  if (first == all.end()) return;
  const int rank = static_cast<int>(first - all.begin());
  throw WorkerInterrupted(fmt::format("{} was interrupted {}", workers->at(rank).to_string(rank), when));
}

Evaluation RecipeRun::evaluate() {
  if (!test_) {
    fit_.reset();  // a laptop has not the memory for both
    test_.emplace(model_, recipe_.test, test_options_);
  }
  try {
    return test_->evaluate();
  } catch (const WorkerInterrupted&) {
    throw;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCancelled) throw;
    throw Error(ErrorCode::kCancelled,
                "interrupted during the test after step " + std::to_string(model_.global_step()));
  }
}

}  // namespace headrace::tools
