// What a loop over batches asks of what it is given.
#pragma once

#include "headrace/pipeline/loader.h"
#include "headrace/train/model.h"

namespace headrace {

// ConfigError for a model of another strategy or one that is not compiled (`what` needs it), and for a loader
// whose batches are in other devices' memory than the strategy's.
void check_loop(const Strategy& strategy, const Model& model, const Loader& loader, const char* what);

}  // namespace headrace
