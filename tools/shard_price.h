// What virtual shards cost on this machine.
#pragma once

#include "headrace/pipeline/dataset.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/model.h"

namespace headrace::tools {

// How many times as long a step takes with fit.virtual_shards as without: the shortest of a few steps of each,
// with no examples, while nothing else is asked of the input. The model stays as it is. Takes some seconds for a
// slow net.
double shard_price(Model& model, const Dataset& data, const FitOptions& fit);

}  // namespace headrace::tools
