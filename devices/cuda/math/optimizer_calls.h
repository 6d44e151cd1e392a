// Adam and SGD of GpuKernels, and the work around an update. Private to the CUDA backend.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "headrace/devices/cuda/element.h"
#include "headrace/devices/cuda/math/column_grid.h"
#include "headrace/devices/cuda/math/column_sums_work.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/optimizer_work.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// The elements are the rows of a matrix of one column.
struct SquareSums {
  using Total = Sum<float>;

  const float* x;
  std::int64_t count;
  GradientNorm* norm;

  HEADRACE_HOST_DEVICE std::int64_t rows() const { return count; }
  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void add(Nothing, Total (&totals)[kWidth], std::int64_t row, std::int64_t) const {
    totals[0].value += x[row] * x[row];
  }
  HEADRACE_HOST_DEVICE void finish(std::int64_t, const Sum<double>& total) const { norm->squares += total.value; }
};

inline ColumnGrid square_grid(const TensorView& x) { return column_grid(x.elements(), 1, 1); }
inline std::size_t square_scratch_bytes(const TensorView& x) {
  return static_cast<std::size_t>(square_grid(x).row_blocks) * sizeof(Sum<float>);
}

// Work for one thread.
struct ClipFactor {
  float max_norm;
  GradientNorm* norm;

  template <int>
  HEADRACE_HOST_DEVICE void run(std::int64_t) const {
    const double length = sqrt(norm->squares), limit = max_norm;
    const bool finite = length <= std::numeric_limits<double>::max();
    norm->factor = length <= limit ? 1.0F
                   : finite        ? static_cast<float>(limit / length)
                                   : std::numeric_limits<float>::quiet_NaN();
  }
};

struct Clamp {
  float* x;
  float limit;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    Pack<float, kWidth> pack = load_pack<kWidth>(x + at);
    for (float& value : pack.values) value = value < -limit ? -limit : value > limit ? limit : value;
    store_pack(x + at, pack);
  }
};

struct Average {
  const float* weights;
  const StepScalars* scalars;
  float* average;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    const float decay = scalars->average_decay;
    const Pack<float, kWidth> w = load_pack<kWidth>(weights + at);
    Pack<float, kWidth> pack = load_pack<kWidth>(average + at);
    for (int k = 0; k < kWidth; ++k) pack.values[k] = w.values[k] + decay * (pack.values[k] - w.values[k]);
    store_pack(average + at, pack);
  }
};

struct LookAhead {
  float* parameters;
  BFloat16* rounded;  // or null
  const StepScalars* scalars;
  float* slow;

  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(std::int64_t at) const {
    const float share = scalars->slow_share;
    if (share == 0) return;
    const Pack<float, kWidth> w = load_pack<kWidth>(parameters + at);
    Pack<float, kWidth> pack = load_pack<kWidth>(slow + at);
    for (int k = 0; k < kWidth; ++k) pack.values[k] += share * (w.values[k] - pack.values[k]);
    store_pack(slow + at, pack);
    store_pack(parameters + at, pack);
    store_rounded(rounded, at, pack);
  }
};

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Adam& of) {
  launches_.submit(
      stream, name_of(of), [=, ranges = std::vector(of.ranges.begin(), of.ranges.end())](auto& launch) {
        const auto& [values, rounded] = of.parameters;
        const AdamRule rule{values.as<float>(),          rounded.as<BFloat16>(),       of.gradients.as<float>(),
                            of.first_moment.as<float>(), of.second_moment.as<float>(), of.scalars};
        submit_ranges(launch, rule, std::span(ranges),
                      packs_fit(4, values, rounded, of.gradients, of.first_moment, of.second_moment));
      });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Sgd& of) {
  launches_.submit(
      stream, name_of(of), [=, ranges = std::vector(of.ranges.begin(), of.ranges.end())](auto& launch) {
        const auto& [values, rounded] = of.parameters;
        const SgdRule rule{values.as<float>(), rounded.as<BFloat16>(), of.gradients.as<float>(),
                           of.velocity.as<float>(), of.scalars};
        submit_ranges(launch, rule, std::span(ranges), packs_fit(4, values, rounded, of.gradients, of.velocity));
      });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::AddSquares& of) {
  launches_.submit(stream, name_of(of), square_scratch_bytes(of.x), [=](auto& launch, void* scratch) {
    const SquareSums work{of.x.as<float>(), of.x.elements(), of.norm};
    launch.template reduce<1>(work, square_grid(of.x), scratch);
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::ClipFactor& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    launch.template flat<1>(ClipFactor{of.max_norm, of.norm}, 1);
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Clamp& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    submit_flat<4>(launch, Clamp{of.x.as<float>(), of.limit}, of.x.elements(), of.x);
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Average& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const Average work{of.weights.as<float>(), of.scalars, of.average.as<float>()};
    submit_flat<4>(launch, work, of.weights.elements(), of.weights, of.average);
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::LookAhead& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    const auto& [values, rounded] = of.parameters;
    const LookAhead work{values.as<float>(), rounded.as<BFloat16>(), of.scalars, of.slow.as<float>()};
    submit_flat<4>(launch, work, values.elements(), values, rounded, of.slow);
  });
}

}  // namespace headrace::cuda
