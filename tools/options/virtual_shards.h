// Virtual shards in the command: the options of a training whose result does not depend on the number of replicas,
// and what that costs.
#pragma once

#include <cstdint>

#include "headrace/pipeline/dataset.h"
#include "headrace/train/fit_options.h"
#include "headrace/train/model.h"

namespace CLI {
class App;
}

namespace headrace::tools {

// --deterministic and --virtual-shards.
struct ShardOptions {
  bool deterministic = false;
  std::uint64_t virtual_shards = 0;

  void add_to(CLI::App& command);
  // As StepOptions::virtual_shards has it.
  int count() const noexcept;
};

// How many times as long a step takes with fit.step.virtual_shards as without: the shortest of a few steps of
// each, with no examples, while nothing else is asked of the input. The model stays as it is. Takes some seconds
// for a slow net.
double shard_price(Model& model, const Dataset& data, const FitOptions& fit);

}  // namespace headrace::tools
