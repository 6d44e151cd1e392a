// How cifar10_speed_net() is trained.
#pragma once

#include <cstdint>

#include "headrace/train/optimizers.h"

namespace headrace {

struct SpeedOptimizerOptions {
  std::int64_t global_batch = 2000;
  std::uint64_t steps = 200;           // over which the rates fall to 0
  std::uint64_t whitening_steps = 75;  // the same for the whitening's bias, which then stays as it is
};

// For losses summed over the batch, Reduction::kSum. Muon for the convolutions; SGD with Nesterov's momentum for
// the whitening's bias, the norms' biases and the head. The weight decay of a step is 2e-6 an example.
Optimizer cifar10_speed_optimizer(const SpeedOptimizerOptions& options = {});

}  // namespace headrace
