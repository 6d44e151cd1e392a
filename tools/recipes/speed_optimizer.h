// How cifar10_speed_net() is trained.
#pragma once

#include <cstdint>

#include "headrace/train/optimizers.h"

namespace headrace::tools {

struct SpeedOptimizerOptions {
  std::int64_t examples_per_step = 1;
  std::uint64_t steps = 1;            // over which the rates fall to 0
  std::uint64_t whitening_steps = 1;  // the same for the whitening's bias, which then stays as it is
  float bias_rate = 0, head_rate = 0, conv_rate = 0;
  float momentum = 0;           // of what is not under Muon
  float decay_per_example = 0;  // weight decay of a step
  bool convs_decay = false;     // what is under Muon, too, times its rate
  MuonOptions muon = {};        // but for its decay, and the steps over which its norm interval grows
};

// For losses summed over the batch, Reduction::kSum. Muon for the convolutions; SGD with Nesterov's momentum for
// the whitening's bias, the norms' biases and the head.
Optimizer speed_optimizer(const SpeedOptimizerOptions& options);

}  // namespace headrace::tools
