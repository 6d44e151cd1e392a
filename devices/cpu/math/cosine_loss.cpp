// The loss of the angle between two vectors.
#include <algorithm>
#include <cmath>

#include "headrace/devices/cpu/math/loss.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/cpu/math/workspace.h"

namespace headrace::cpu {
namespace {

// Returns the negative cosine of one vector, and writes its gradient times `factor` unless that is null.
double cosine_vector(const float* x, const float* target, std::int64_t width, float factor, float* gradient) {
  double squares = 0, target_squares = 0, products = 0;
  for (std::int64_t k = 0; k < width; ++k) {
    squares += static_cast<double>(x[k]) * static_cast<double>(x[k]);
    target_squares += static_cast<double>(target[k]) * static_cast<double>(target[k]);
    products += static_cast<double>(x[k]) * static_cast<double>(target[k]);
  }
  constexpr double kLimit = Kernels::kMaxInverseNorm;
  const double inverse = std::min(1 / std::sqrt(squares), kLimit);
  const double by = inverse * std::min(1 / std::sqrt(target_squares), kLimit), cosine = products * by;
  if (gradient == nullptr) return -cosine;
  const double along = inverse < kLimit ? cosine * inverse * inverse : 0;  // a limited norm is a constant
  for (std::int64_t k = 0; k < width; ++k) {
    const double slope = along * static_cast<double>(x[k]) - by * static_cast<double>(target[k]);
    gradient[k] = static_cast<float>(slope * static_cast<double>(factor));
  }
  return -cosine;
}

}  // namespace

void cosine_loss(const CosineRows& of, const RealRows& real, float* dx, MetricSums& sums) {
  const std::int64_t elements = of.vectors * of.width;
  const auto bytes = static_cast<std::size_t>(real.count) * sizeof(double);
  auto* losses = reinterpret_cast<double*>(Workspace::of_this_thread().reserve(bytes));
  parallel_ranges(real.count, row_grain(4 * elements), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float weight = real.weight(row), factor = real.factor * weight / static_cast<float>(of.vectors);
      double loss = 0;
      for (std::int64_t v = 0; v < of.vectors; ++v) {
        const std::int64_t at = row * elements + v * of.width;
        loss += cosine_vector(of.x + at, of.targets + at, of.width, factor, dx == nullptr ? nullptr : dx + at);
      }
      losses[row] = static_cast<double>(weight) * loss / static_cast<double>(of.vectors);
    }
  });
  double loss = 0;
  for (std::int64_t row = 0; row < real.count; ++row) loss += losses[row];
  if (dx != nullptr) std::fill(dx + real.count * elements, dx + of.rows * elements, 0.0F);
  sums.loss += loss;
  sums.examples += real.count;
}

}  // namespace headrace::cpu
