// Adam and SGD of GpuKernels. Private to the CUDA backend.
#pragma once

#include <vector>

#include "headrace/devices/common/kernel_checks.h"
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

}  // namespace headrace::cuda
