// Adam and SGD of GpuKernels, and the work around an update. Private to the CUDA backend.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/element.h"
#include "headrace/devices/cuda/math/column_grid.h"
#include "headrace/devices/cuda/math/column_sums_work.h"
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

template <typename Launcher>
void submit_squares(Launcher& launch, const TensorView& x, GradientNorm* norm, void* scratch) {
  launch.template reduce<1>(SquareSums{x.as<float>(), x.elements(), norm}, square_grid(x), scratch);
}

template <typename Launcher>
void submit_clamp(Launcher& launch, const TensorView& x, float limit) {
  by_width<4>(packs_fit(4, x), [&](auto width) {
    launch.template flat<width()>(Clamp{x.as<float>(), limit}, x.elements());
  });
}

template <typename Launcher>
void submit_average(Launcher& launch, const TensorView& weights, const StepScalars* scalars,
                    const TensorView& average) {
  by_width<4>(packs_fit(4, weights, average), [&](auto width) {
    launch.template flat<width()>(Average{weights.as<float>(), scalars, average.as<float>()}, weights.elements());
  });
}

template <typename Launcher>
void submit_look_ahead(Launcher& launch, const Parameters& parameters, const StepScalars* scalars,
                       const TensorView& slow) {
  const auto& [values, rounded] = parameters;
  by_width<4>(packs_fit(4, values, rounded, slow), [&](auto width) {
    launch.template flat<width()>(LookAhead{values.as<float>(), rounded.as<BFloat16>(), scalars, slow.as<float>()},
                                  values.elements());
  });
}

template <typename Launches>
void GpuKernels<Launches>::adam(Stream& stream, const Parameters& parameters, const TensorView& gradients,
                                const TensorView& first_moment, const TensorView& second_moment,
                                std::span<const UpdateRange<AdamOptions>> ranges, const StepScalars* scalars) {
  check::adam(parameters, gradients, first_moment, second_moment, ranges);
  launches_.submit(stream, "adam", [=, owned = std::vector(ranges.begin(), ranges.end())](auto& launch) {
    submit_adam(launch, parameters, gradients, first_moment, second_moment, std::span(owned), scalars);
  });
}

template <typename Launches>
void GpuKernels<Launches>::sgd(Stream& stream, const Parameters& parameters, const TensorView& gradients,
                               const TensorView& velocity, std::span<const UpdateRange<SgdOptions>> ranges,
                               const StepScalars* scalars) {
  check::sgd(parameters, gradients, velocity, ranges);
  launches_.submit(stream, "sgd", [=, owned = std::vector(ranges.begin(), ranges.end())](auto& launch) {
    submit_sgd(launch, parameters, gradients, velocity, std::span(owned), scalars);
  });
}

template <typename Launches>
void GpuKernels<Launches>::add_squares(Stream& stream, const TensorView& x, GradientNorm* norm) {
  check::tensor("add_squares", "x", x);
  launches_.submit(stream, "add_squares", square_scratch_bytes(x),
                   [=](auto& launch, void* scratch) { submit_squares(launch, x, norm, scratch); });
}

template <typename Launches>
void GpuKernels<Launches>::clip_factor(Stream& stream, float max_norm, GradientNorm* norm) {
  check::limit("clip_factor", max_norm);
  launches_.submit(stream, "clip_factor", [=](auto& launch) {
    launch.template flat<1>(ClipFactor{max_norm, norm}, 1);
  });
}

template <typename Launches>
void GpuKernels<Launches>::clamp(Stream& stream, const TensorView& x, float limit) {
  check::tensor("clamp", "x", x);
  check::limit("clamp", limit);
  launches_.submit(stream, "clamp", [=](auto& launch) { submit_clamp(launch, x, limit); });
}

template <typename Launches>
void GpuKernels<Launches>::average(Stream& stream, const TensorView& weights, const StepScalars* scalars,
                                   const TensorView& average) {
  for (const TensorView& view : {weights, average}) check::same("average", view, weights);
  launches_.submit(stream, "average", [=](auto& launch) { submit_average(launch, weights, scalars, average); });
}

template <typename Launches>
void GpuKernels<Launches>::look_ahead(Stream& stream, const Parameters& parameters, const StepScalars* scalars,
                                      const TensorView& slow) {
  check::look_ahead(parameters, slow);
  launches_.submit(stream, "look_ahead",
                   [=](auto& launch) { submit_look_ahead(launch, parameters, scalars, slow); });
}

}  // namespace headrace::cuda
