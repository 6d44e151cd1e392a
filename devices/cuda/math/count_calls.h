// The counts of GpuKernels. Private to the CUDA backend.
#pragma once

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/class_counts_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"

namespace headrace::cuda {

template <typename Launches>
void GpuKernels<Launches>::count_top(Stream& stream, const TensorView& x, const TensorView& labels, int k,
                                     const StepScalars* scalars, MetricSums* sums) {
  check::top("count_top", k);
  check::classes("count_top", x, labels);
  launches_.submit(stream, "count_top", loss_scratch_bytes(x), [=](auto& launch, void* scratch) {
    submit_count_top(launch, x, labels, k, scalars, sums, scratch);
  });
}

template <typename Launches>
void GpuKernels<Launches>::count_confusions(Stream& stream, const TensorView& x, const TensorView& labels,
                                            const StepScalars* scalars, const TensorView& counts) {
  check::classes("count_confusions", x, labels);
  check::confusions("count_confusions", x, counts);
  launches_.submit(stream, "count_confusions",
                   [=](auto& launch) { submit_count_confusions(launch, x, labels, scalars, counts); });
}

}  // namespace headrace::cuda
