// The cross-entropy of softmax against a target for every class, as work for warps, a row each. Private to the
// CUDA backend.
#pragma once

#include "headrace/devices/cuda/math/loss_work.h"

namespace headrace::cuda {

// Of e^(z - maximum), of the targets, and of target * (z - maximum).
struct SoftSums {
  float exp_sum, targets, weighted;
};
HEADRACE_HOST_DEVICE SoftSums merged(const SoftSums& a, const SoftSums& b) {
  return {a.exp_sum + b.exp_sum, a.targets + b.targets, a.weighted + b.weighted};
}

struct SoftLogitRows {
  LogitRows logits;
  const float* given;
  float kept, smooth;  // the target is kept * given + smooth

  HEADRACE_HOST_DEVICE float target(std::int64_t at) const { return kept * given[at] + smooth; }
  HEADRACE_HOST_DEVICE RowMaximum maximum(std::int64_t row, int lane) const { return logits.maximum(row, lane); }
  HEADRACE_HOST_DEVICE SoftSums sums(std::int64_t row, int lane, const RowMaximum& maximum) const {
    SoftSums sums{};
    for (std::int64_t k = row * logits.classes + lane; k < (row + 1) * logits.classes; k += kRowLanes) {
      const float distance = logits.logits[k] - maximum.value;
      sums.exp_sum += expf(distance);
      sums.targets += target(k);
      sums.weighted += target(k) * distance;
    }
    return sums;
  }
};

struct SoftCrossEntropyRows {
  SoftLogitRows in;
  const StepScalars* scalars;
  float* dlogits;   // or null
  RowLoss* losses;  // one a row

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum& maximum,
                                  const SoftSums& sums) const {
    const bool real = row < scalars->rows;
    if (dlogits != nullptr) write_gradient(row, lane, maximum, sums, real);
    if (lane != 0) return;
    losses[row] = {};
    if (!real) return;
    losses[row].loss = static_cast<double>(sums.targets) * log(static_cast<double>(sums.exp_sum)) -
                       static_cast<double>(sums.weighted);
  }

  HEADRACE_HOST_DEVICE void write_gradient(std::int64_t row, int lane, const RowMaximum& maximum,
                                           const SoftSums& sums, bool real) const {
    const LogitRows& z = in.logits;
    const float factor = scalars->inverse_global_rows;
    const float share = sums.targets / sums.exp_sum;
    for (std::int64_t k = row * z.classes + lane; k < (row + 1) * z.classes; k += kRowLanes) {
      dlogits[k] = real ? (expf(z.logits[k] - maximum.value) * share - in.target(k)) * factor : 0.0F;
    }
  }
};

template <typename Launcher>
void submit_soft_cross_entropy(Launcher& launch, const TensorView& logits, const TensorView& targets,
                               float smoothing, const StepScalars* scalars, const TensorView& dlogits,
                               MetricSums* sums, void* scratch) {
  auto* losses = static_cast<RowLoss*>(scratch);
  const std::int64_t classes = logits.shape[1];
  const SoftLogitRows in{{logits.as<float>(), classes},
                         targets.as<float>(),
                         1.0F - smoothing,
                         smoothing / static_cast<float>(classes)};
  launch.rows(SoftCrossEntropyRows{in, scalars, dlogits.as<float>(), losses}, logits.shape[0]);
  launch.total(MetricTotal{losses, logits.shape[0], scalars, sums});
}

}  // namespace headrace::cuda
