// Options with which a fit or an evaluation opens its loader.
#pragma once

#include <cstdint>

#include "headrace/train/evaluator.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/model/storage_types.h"

namespace headrace {

// Return options for `passes` over the training data, and for one pass per epoch over the validation's. `start`:
// where each continues in a resumed fit.
LoaderOptions training_input(const ModelState& model, const FitOptions& options, std::uint64_t passes,
                             const std::optional<LoaderState>& start = {});
LoaderOptions validation_input(const ModelState& model, const FitOptions& options,
                               const std::optional<LoaderState>& start = {});
// `mode`: kEvaluate or kPredict.
LoaderOptions evaluation_input(const ModelState& model, Mode mode, const EvaluateOptions& options);

}  // namespace headrace
