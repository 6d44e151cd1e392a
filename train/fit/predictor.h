// A net's results for every example of a data set.
#pragma once

#include "headrace/pipeline/loader.h"
#include "headrace/train/fit/evaluator.h"
#include "headrace/train/model/model_state.h"

namespace headrace {

// Error(kCancelled) where the pass was stopped.
Predictions predict(ModelState& model, Loader& loader, const EvaluationPass& pass, bool averaged_weights);

}  // namespace headrace
