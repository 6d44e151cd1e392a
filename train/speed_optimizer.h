// How cifar10_speed_net() is trained.
#pragma once

#include <cstdint>

#include "headrace/train/optimizers.h"

namespace headrace {

struct SpeedOptimizerOptions {
  std::int64_t global_batch = 2000;
  std::uint64_t steps = 200;           // over which the rates fall to 0
  std::uint64_t whitening_steps = 75;  // the same for the whitening's bias, which then stays as it is
  float bias_rate = 0.053F, head_rate = 0.67F, conv_rate = 0.24F;
  float momentum = 0.85F;           // of what is not under Muon
  float decay_per_example = 2e-6F;  // weight decay of a step
  bool convs_decay = false;         // what is under Muon, too, times its rate
  MuonOptions muon = {};            // but for its decay, and the steps over which its norm interval grows
};

// Of the later record, `cifar10-fast-b`.
inline constexpr SpeedOptimizerOptions kSpeedOptimizerB{.global_batch = 1536,
                                                        .steps = 243,
                                                        .whitening_steps = 7,
                                                        .bias_rate = 0.0573F,
                                                        .head_rate = 0.5415F,
                                                        .conv_rate = 0.205F,
                                                        .momentum = 0.825F,
                                                        .decay_per_example = 1.0418e-6F,
                                                        .convs_decay = true,
                                                        .muon = {.momentum = 0.655F,
                                                                 .a = 3.4576F,
                                                                 .b = -4.7391F,
                                                                 .c = 2.0843F,
                                                                 .norm_interval = {.first = 2, .growth = 15}}};

// For losses summed over the batch, Reduction::kSum. Muon for the convolutions; SGD with Nesterov's momentum for
// the whitening's bias, the norms' biases and the head.
Optimizer cifar10_speed_optimizer(const SpeedOptimizerOptions& options = {});

}  // namespace headrace
