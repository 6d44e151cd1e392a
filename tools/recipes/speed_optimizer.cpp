#include "headrace/tools/recipes/speed_optimizer.h"

#include <algorithm>
#include <utility>

namespace headrace::tools {
namespace {

Schedule falling(float peak, std::uint64_t steps) {
  return Schedule::linear_decay({.peak = peak, .total_steps = std::max<std::uint64_t>(1, steps)});
}

float decay_of(const SpeedOptimizerOptions& options) {
  return options.decay_per_example * static_cast<float>(options.examples_per_step);
}

MuonOptions muon_of(const SpeedOptimizerOptions& options) {
  MuonOptions muon = options.muon;
  muon.adjust_rate = MuonRate::kNone;
  muon.normalize = true;
  muon.weight_decay = options.convs_decay ? decay_of(options) : 0;
  muon.norm_interval.over_steps = std::max<std::uint64_t>(1, options.steps);
  return muon;
}

// The rule multiplies its decay by the rate.
ParameterGroup nesterov(VariableRule takes, float rate, const SpeedOptimizerOptions& options,
                        std::uint64_t steps) {
  return {
      .takes = std::move(takes),
      .rule = SgdOptions{.momentum = options.momentum, .weight_decay = decay_of(options) / rate, .nesterov = true},
      .learning_rate = falling(rate, steps)};
}

}  // namespace

Optimizer speed_optimizer(const SpeedOptimizerOptions& options) {
  Optimizer optimizer = muon(falling(options.conv_rate, options.steps), muon_of(options));
  const VariableRule bias = VariableRule::of_kind("conv") && VariableRule::of_rank(1);
  optimizer.groups = {nesterov(bias, options.bias_rate, options, options.whitening_steps),
                      nesterov(VariableRule::of_kind("batch_norm"), options.bias_rate, options, options.steps),
                      nesterov(VariableRule::of_kind("dense"), options.head_rate, options, options.steps)};
  return optimizer;
}

}  // namespace headrace::tools
