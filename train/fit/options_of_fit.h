// Turns the options of a fit or an evaluation into its loaders, its validation, and the class weights of its loss.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/pipeline/held_out.h"
#include "headrace/train/evaluator.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/model.h"
#include "headrace/train/model/value_types.h"

namespace headrace {

// Options with which a fit or an evaluation opens its loader.

// Return options for `passes` over the training data, and for one pass per epoch over the validation's. `start`:
// where each continues in a resumed fit.
LoaderOptions training_input(const ModelState& model, const FitOptions& options, std::uint64_t passes,
                             const std::optional<LoaderState>& start = {});
LoaderOptions validation_input(const ModelState& model, const FitOptions& options,
                               const std::optional<LoaderState>& start = {});
// `mode`: kEvaluate or kPredict.
LoaderOptions evaluation_input(const ModelState& model, Mode mode, const EvaluateOptions& options);

// The records that a fit leaves to its validation.

// Returns the two parts of the data if the options ask for a validation split. Throws ConfigError if they have a
// validation, too, or if the data cannot be split.
std::optional<HeldOut> split_of_fit(const Dataset& data, const FitOptions& options);

// The class weights of a single fit.

// While one lives, the model's compiled loss has these class weights; afterwards it is what it was, unless the
// model has been compiled again.
class ClassWeighting {
 public:
  // Does nothing if there are no weights. Throws ConfigError if the loss has several terms.
  ClassWeighting(Model& model, const std::vector<float>& weights);
  ~ClassWeighting();
  ClassWeighting(const ClassWeighting&) = delete;
  ClassWeighting& operator=(const ClassWeighting&) = delete;

 private:
  ModelState& model_;
  std::uint64_t compilation_;
  std::optional<Loss> before_;
};

}  // namespace headrace
