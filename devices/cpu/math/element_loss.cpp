#include "headrace/devices/cpu/math/element_loss.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/cpu/math/workspace.h"

namespace headrace::cpu {
namespace {

// A loss and its slope.
struct ElementTerm {
  float loss, slope;
};

template <ElementLoss kLoss>
ElementTerm element_term(float x, float t) {
  if constexpr (kLoss == ElementLoss::kSquaredError) return {(x - t) * (x - t), 2 * (x - t)};
  if constexpr (kLoss == ElementLoss::kAbsoluteError) {
    return {std::abs(x - t), x > t ? 1.0F : x < t ? -1.0F : 0.0F};
  }
  if constexpr (kLoss == ElementLoss::kBinaryFromLogits) {
    const float e = std::exp(-std::abs(x)), p = (x < 0 ? e : 1.0F) / (1.0F + e);
    return {std::max(x, 0.0F) - x * t + std::log1p(e), p - t};
  }
  constexpr float kLeast = 1e-7F;
  const float p = x < kLeast ? kLeast : x > 1 - kLeast ? 1 - kLeast : x;  // NaN stays
  return {-t * std::log(p) - (1 - t) * std::log1p(-p), (p - t) / (p * (1 - p))};
}

template <ElementLoss kLoss, typename Target>
double element_loss_row(const ElementRows<Target>& of, std::int64_t at, float factor, float* gradient) {
  const float* x = of.x + at;
  const Target* targets = of.targets + at;
  const std::int64_t elements = of.elements;
  const float keep = 1 - of.label_smoothing, half = of.label_smoothing / 2;
  double loss = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    const ElementTerm term = element_term<kLoss>(x[i], keep * static_cast<float>(targets[i]) + half);
    loss += static_cast<double>(term.loss);
    if (gradient != nullptr) gradient[i] = term.slope * factor;
  }
  return loss / static_cast<double>(elements);
}

template <ElementLoss kLoss, typename Target>
void element_loss_rows(const ElementRows<Target>& of, const StepScalars& scalars, float* dx, MetricSums& sums) {
  const std::int64_t elements = of.elements;
  const float factor = scalars.inverse_global_rows / static_cast<float>(elements);
  const auto bytes = static_cast<std::size_t>(scalars.rows) * sizeof(double);
  auto* losses = reinterpret_cast<double*>(Workspace::of_this_thread().reserve(bytes));
  parallel_ranges(scalars.rows, row_grain(4 * elements), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = row * elements;
      losses[row] = element_loss_row<kLoss>(of, at, factor, dx == nullptr ? nullptr : dx + at);
    }
  });
  double loss = 0;
  for (std::int64_t row = 0; row < scalars.rows; ++row) loss += losses[row];
  if (dx != nullptr) std::fill(dx + scalars.rows * elements, dx + of.rows * elements, 0.0F);
  sums.loss += loss;
  sums.examples += scalars.rows;
}

}  // namespace

template <typename Target>
void element_loss(ElementLoss loss, const ElementRows<Target>& of, const StepScalars& scalars, float* dx,
                  MetricSums& sums) {
  switch (loss) {
    case ElementLoss::kSquaredError: return element_loss_rows<ElementLoss::kSquaredError>(of, scalars, dx, sums);
    case ElementLoss::kAbsoluteError: return element_loss_rows<ElementLoss::kAbsoluteError>(of, scalars, dx, sums);
    case ElementLoss::kBinaryFromLogits:
      return element_loss_rows<ElementLoss::kBinaryFromLogits>(of, scalars, dx, sums);
    case ElementLoss::kBinaryFromProbabilities:
      return element_loss_rows<ElementLoss::kBinaryFromProbabilities>(of, scalars, dx, sums);
  }
}

template void element_loss(ElementLoss, const ElementRows<float>&, const StepScalars&, float*, MetricSums&);
template void element_loss(ElementLoss, const ElementRows<std::int64_t>&, const StepScalars&, float*, MetricSums&);

void add_losses(const float* losses, const StepScalars& scalars, MetricSums& sums) {
  double loss = 0;
  for (std::int64_t row = 0; row < scalars.rows; ++row) loss += static_cast<double>(losses[row]);
  sums.loss += loss;
  sums.examples += scalars.rows;
}

}  // namespace headrace::cpu
