// Adam and SGD of GpuKernels, and what is done around an update. Private to the CUDA backend.
#pragma once

#include <vector>

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/averaging_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/optimizer_work.h"

namespace headrace::cuda {

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
