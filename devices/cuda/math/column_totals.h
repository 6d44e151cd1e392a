// Sums over the rows of a matrix, and the merging of two parts of such a sum. f32 within a block of threads, f64
// over blocks: the error does not grow with the number of rows. Private to the CUDA backend.
#pragma once

#include <cstdint>

#include "headrace/devices/cuda/host_device.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// Without constructors, so that they may be in shared memory; {} is the empty sum.
template <typename Real>
struct Sum {
  Real value;
};
// Mean, and the sum of squared distances from it.
template <typename Real>
struct Moments {
  Real count, mean, deviation;
};
// Sums of dy, and of dy times x's distance from its mean.
template <typename Real>
struct GradientSums {
  Real dy, dy_distance;
};

template <typename Real>
HEADRACE_HOST_DEVICE Sum<Real> merged(const Sum<Real>& a, const Sum<Real>& b) {
  return {a.value + b.value};
}
template <typename Real>
HEADRACE_HOST_DEVICE GradientSums<Real> merged(const GradientSums<Real>& a, const GradientSums<Real>& b) {
  return {a.dy + b.dy, a.dy_distance + b.dy_distance};
}
// Chan, Golub, LeVeque: no squares of large numbers are ever subtracted.
template <typename Real>
HEADRACE_HOST_DEVICE Moments<Real> merged(const Moments<Real>& a, const Moments<Real>& b) {
  if (b.count == 0) return a;
  if (a.count == 0) return b;
  const Real count = a.count + b.count;
  const Real step = b.mean - a.mean;
  const Real share = b.count / count;
  return {count, a.mean + step * share, a.deviation + b.deviation + step * step * (a.count * share)};
}

HEADRACE_HOST_DEVICE Sum<double> wide(const Sum<float>& of) { return {of.value}; }
HEADRACE_HOST_DEVICE Moments<double> wide(const Moments<float>& of) { return {of.count, of.mean, of.deviation}; }
HEADRACE_HOST_DEVICE GradientSums<double> wide(const GradientSums<float>& of) { return {of.dy, of.dy_distance}; }

// The leading rows of a matrix that belong to real examples; all of them without `scalars`.
struct RealRows {
  const StepScalars* scalars;
  std::int64_t rows_per_example;
  std::int64_t all;

  HEADRACE_HOST_DEVICE std::int64_t count() const {
    if (scalars == nullptr) return all;
    const std::int64_t real = scalars->rows * rows_per_example;
    return real < all ? real : all;
  }
};

// The last pass over block totals: 4 columns and 64 lanes per block of threads. Merging moments divides in f64, so
// the chain is kept short: of 528 totals a lane merges 9, a tree of lanes 6.
inline constexpr int kFinishColumns = 4, kFinishLanes = 64;

// A lane's share of one column's totals, in the order of blocks.
template <typename Total>
HEADRACE_HOST_DEVICE auto lane_total(const Total* totals, std::int64_t blocks, std::int64_t columns,
                                     std::int64_t column, int lane) {
  decltype(wide(Total{})) sum{};
  for (std::int64_t b = lane; b < blocks; b += kFinishLanes) sum = merged(sum, wide(totals[b * columns + column]));
  return sum;
}

}  // namespace headrace::cuda
