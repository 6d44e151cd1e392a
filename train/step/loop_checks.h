// What a loop over batches asks of what it is given.
#pragma once

#include "headrace/pipeline/loader.h"
#include "headrace/train/model.h"

namespace headrace {

// ConfigError for a model of another strategy or one that is not compiled: `what` needs it, "training".
void check_model(const Strategy& strategy, const Model& model, const char* what);
// ConfigError for a loader whose batches are in other devices' memory than the strategy's, or are divided among
// another number of shards.
void check_loader(Strategy& strategy, const Loader& loader, int virtual_shards, const char* what);

}  // namespace headrace
