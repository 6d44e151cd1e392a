// The optimizer of cifar10_speed_net().
#pragma once

#include <cstdint>

#include "headrace/train/optimizers.h"

namespace headrace::tools {

struct SpeedOptimizerOptions {
  std::int64_t examples_per_step = 1;
  std::uint64_t steps = 1;            // steps over which the rates fall to 0
  std::uint64_t whitening_steps = 1;  // for the whitening's bias, which is fixed afterwards
  float bias_rate = 0, head_rate = 0, conv_rate = 0;
  float momentum = 0;           // of parameters not under Muon
  float decay_per_example = 0;  // weight decay per step
  bool convs_decay = false;     // also decays parameters under Muon, times their rate
  // Except its decay and rate, and the steps over which its norm interval grows: it normalizes.
  MuonOptions muon = {.momentum = 0.6F, .iterations = 3};
};

// Returns Muon for the convolutions, and SGD with Nesterov's momentum for the whitening's bias, the norms' biases
// and the head. REQUIRES: losses are summed over the batch, Reduction::kSum.
Optimizer speed_optimizer(const SpeedOptimizerOptions& options);

}  // namespace headrace::tools
