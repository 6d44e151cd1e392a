// Losses that are means over the elements of an example, as work for warps, an example each. Private to the CUDA
// backend.
#pragma once

#include <type_traits>

#include "headrace/devices/cuda/math/loss_work.h"

namespace headrace::cuda {

// A loss and its slope.
struct ElementTerm {
  float loss, slope;
};

template <ElementLoss kLoss>
HEADRACE_HOST_DEVICE ElementTerm element_term(float x, float t) {
  if constexpr (kLoss == ElementLoss::kSquaredError) return {(x - t) * (x - t), 2 * (x - t)};
  if constexpr (kLoss == ElementLoss::kAbsoluteError) {
    return {fabsf(x - t), x > t ? 1.0F : x < t ? -1.0F : 0.0F};
  }
  if constexpr (kLoss == ElementLoss::kBinaryFromLogits) {
    const float e = expf(-fabsf(x)), p = (x < 0 ? e : 1.0F) / (1.0F + e);
    return {(x > 0 ? x : 0.0F) - x * t + log1pf(e), p - t};
  }
  constexpr float kLeast = 1e-7F;
  const float p = x < kLeast ? kLeast : x > 1 - kLeast ? 1 - kLeast : x;  // NaN stays
  return {-t * logf(p) - (1 - t) * log1pf(-p), (p - t) / (p * (1 - p))};
}

template <ElementLoss kLoss, typename Target>
struct ElementRows {
  const float* x;
  const Target* targets;
  std::int64_t elements;  // of an example
  float label_smoothing;

  HEADRACE_HOST_DEVICE ElementTerm term(std::int64_t at) const {
    const float target = (1 - label_smoothing) * static_cast<float>(targets[at]) + label_smoothing / 2;
    return element_term<kLoss>(x[at], target);
  }
  HEADRACE_HOST_DEVICE RowMaximum maximum(std::int64_t, int) const { return {}; }
  HEADRACE_HOST_DEVICE RowLoss sums(std::int64_t row, int lane, const RowMaximum&) const {
    RowLoss sums{};
    for (std::int64_t i = row * elements + lane; i < (row + 1) * elements; i += kRowLanes) {
      sums.loss += static_cast<double>(term(i).loss);
    }
    return sums;
  }
};

template <ElementLoss kLoss, typename Target>
struct ElementLossRows {
  ElementRows<kLoss, Target> in;
  const StepScalars* scalars;
  float* dx;        // or null
  RowLoss* losses;  // one a row

  HEADRACE_HOST_DEVICE void write(std::int64_t row, int lane, const RowMaximum&, const RowLoss& sums) const {
    const bool real = row < scalars->rows;
    const float factor = scalars->inverse_global_rows / static_cast<float>(in.elements);
    for (std::int64_t i = row * in.elements + lane; dx != nullptr && i < (row + 1) * in.elements; i += kRowLanes) {
      dx[i] = real ? in.term(i).slope * factor : 0.0F;
    }
    if (lane == 0) losses[row] = {real ? sums.loss / static_cast<double>(in.elements) : 0.0, 0};
  }
};

// function(integral_constant) with the loss.
template <typename Function>
void by_element_loss(ElementLoss loss, const Function& function) {
  const auto run = [&]<ElementLoss kLoss>() { function(std::integral_constant<ElementLoss, kLoss>{}); };
  switch (loss) {
    case ElementLoss::kSquaredError: return run.template operator()<ElementLoss::kSquaredError>();
    case ElementLoss::kAbsoluteError: return run.template operator()<ElementLoss::kAbsoluteError>();
    case ElementLoss::kBinaryFromLogits: return run.template operator()<ElementLoss::kBinaryFromLogits>();
    case ElementLoss::kBinaryFromProbabilities:
      return run.template operator()<ElementLoss::kBinaryFromProbabilities>();
  }
}

template <typename Launcher, typename Loss, typename Target>
void submit_element_loss(Launcher& launch, Loss, const TensorView& x, const Target* targets, float label_smoothing,
                         const StepScalars* scalars, const TensorView& dx, MetricSums* sums, void* scratch) {
  auto* losses = static_cast<RowLoss*>(scratch);
  const std::int64_t rows = x.shape[0];
  const ElementRows<Loss::value, Target> in{x.as<float>(), targets, x.elements() / rows, label_smoothing};
  launch.rows(ElementLossRows<Loss::value, Target>{in, scalars, dx.as<float>(), losses}, rows);
  launch.total(MetricTotal{losses, rows, scalars, sums});
}

// Losses that were computed elsewhere.
struct GivenLosses {
  const float* losses;
  std::int64_t all_rows;
  const StepScalars* scalars;
  MetricSums* sums;

  HEADRACE_HOST_DEVICE RowLoss part(int thread, int threads) const {
    const std::int64_t rows = scalars->rows < all_rows ? scalars->rows : all_rows;
    RowLoss total{};
    for (std::int64_t row = thread; row < rows; row += threads) total.loss += static_cast<double>(losses[row]);
    return total;
  }
  HEADRACE_HOST_DEVICE void finish(const RowLoss& total) const {
    sums->loss += total.loss;
    sums->examples += scalars->rows;
  }
};

}  // namespace headrace::cuda
