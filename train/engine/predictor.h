// A net's results for every example of a data set.
#pragma once

#include <cstdint>

#include "headrace/pipeline/loader.h"
#include "headrace/train/engine/model_state.h"

namespace headrace {

// One pass, or `steps` batches of it (0: all).
Predictions predict(ModelState& model, Loader& loader, std::uint64_t steps);

}  // namespace headrace
