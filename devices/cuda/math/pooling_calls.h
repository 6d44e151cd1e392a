// Pooling of GpuKernels. Private to the CUDA backend.
#pragma once

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/columns_work.h"
#include "headrace/devices/cuda/math/global_average_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/pooling_work.h"

namespace headrace::cuda {

template <typename Launches>
void GpuKernels<Launches>::max_pool_forward(Stream& stream, const TensorView& x, const TensorView& y,
                                            const TensorView& argmax, const PoolOptions& options) {
  check::max_pool("max_pool_forward", x, y, argmax, options, kHalf);
  launches_.submit(stream, "max_pool_forward",
                   [=](auto& launch) { submit_max_pool_forward(launch, x, y, argmax, options); });
}

template <typename Launches>
void GpuKernels<Launches>::max_pool_backward(Stream& stream, const TensorView& dy, const TensorView& argmax,
                                             const TensorView& dx, const PoolOptions& options) {
  check::max_pool("max_pool_backward", dx, dy, argmax, options, kHalf);
  launches_.submit(stream, "max_pool_backward",
                   [=](auto& launch) { submit_max_pool_backward(launch, dy, argmax, dx, options); });
}

template <typename Launches>
void GpuKernels<Launches>::average_pool_forward(Stream& stream, const TensorView& x, const TensorView& y,
                                                const PoolOptions& options) {
  check::average_pool("average_pool_forward", x, y, options, kHalf);
  launches_.submit(stream, "average_pool_forward",
                   [=](auto& launch) { submit_average_pool_forward(launch, x, y, options); });
}

template <typename Launches>
void GpuKernels<Launches>::average_pool_backward(Stream& stream, const TensorView& dy, const TensorView& dx,
                                                 const PoolOptions& options) {
  check::average_pool("average_pool_backward", dx, dy, options, kHalf);
  launches_.submit(stream, "average_pool_backward",
                   [=](auto& launch) { submit_average_pool_backward(launch, dy, dx, options); });
}

template <typename Launches>
void GpuKernels<Launches>::copy_columns(Stream& stream, const TensorView& from, std::int64_t from_column,
                                        const TensorView& to, std::int64_t to_column, std::int64_t columns) {
  check::columns("copy_columns", from, from_column, to, to_column, columns, kHalf);
  launches_.submit(stream, "copy_columns",
                   [=](auto& launch) { submit_copy_columns(launch, from, from_column, to, to_column, columns); });
}

template <typename Launches>
void GpuKernels<Launches>::global_average_pool_forward(Stream& stream, const TensorView& x, const TensorView& y) {
  check::global_pool("global_average_pool_forward", x, y, kHalf);
  launches_.submit(stream, "global_average_pool_forward",
                   [=](auto& launch) { submit_global_average_forward(launch, x, y); });
}

template <typename Launches>
void GpuKernels<Launches>::global_average_pool_backward(Stream& stream, const TensorView& dy,
                                                        const TensorView& dx) {
  check::global_pool("global_average_pool_backward", dx, dy, kHalf);
  launches_.submit(stream, "global_average_pool_backward",
                   [=](auto& launch) { submit_global_average_backward(launch, dy, dx); });
}

}  // namespace headrace::cuda
