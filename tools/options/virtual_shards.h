// Virtual shards in the command: the options of a training whose result does not depend on the number of replicas,
// and their cost.
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
  // Returns the value for StepOptions::virtual_shards.
  int count() const noexcept;
};

// Returns the ratio of a training step's time with fit.step.virtual_shards to that without: the shortest of a few
// steps of each, with no examples, while the input is otherwise idle. Leaves the model unchanged. Takes some
// seconds for a slow net.
double shard_price(Model& model, const Dataset& data, const FitOptions& fit);

}  // namespace headrace::tools
