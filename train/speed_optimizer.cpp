#include "headrace/train/speed_optimizer.h"

#include <algorithm>
#include <string>

namespace headrace {
namespace {

constexpr float kBiasRate = 0.053F, kHeadRate = 0.67F, kConvRate = 0.24F;
constexpr float kDecayAnExample = 2e-6F;

Schedule falling(float peak, std::uint64_t steps) {
  return Schedule::linear_decay({.peak = peak, .total_steps = std::max<std::uint64_t>(1, steps)});
}

// All of a kind of layer that is no convolution's weights. The rule multiplies its decay by the rate.
ParameterGroup nesterov(const std::string& kind, float rate, std::int64_t batch, std::uint64_t steps) {
  return {.takes =
              [kind](const TrainedVariable& variable) {
                return variable.kind == kind && (kind != "conv" || variable.shape.rank() == 1);
              },
          .rule = SgdOptions{.momentum = 0.85F,
                             .weight_decay = kDecayAnExample * static_cast<float>(batch) / rate,
                             .nesterov = true},
          .learning_rate = falling(rate, steps)};
}

}  // namespace

Optimizer cifar10_speed_optimizer(const SpeedOptimizerOptions& options) {
  Optimizer optimizer = muon(falling(kConvRate, options.steps));
  optimizer.groups = {nesterov("conv", kBiasRate, options.global_batch, options.whitening_steps),
                      nesterov("batch_norm", kBiasRate, options.global_batch, options.steps),
                      nesterov("dense", kHeadRate, options.global_batch, options.steps)};
  return optimizer;
}

}  // namespace headrace
