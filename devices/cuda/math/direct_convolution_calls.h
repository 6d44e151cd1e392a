// Convolutions of GpuKernels that no library computes. Private to the CUDA backend.
#pragma once

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/direct_convolution_work.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"

namespace headrace::cuda {

template <typename Launches>
void GpuKernels<Launches>::direct_conv_forward(Stream& stream, const TensorView& x, const TensorView& weights,
                                               const TensorView& bias, const TensorView& y,
                                               const ConvOptions& options, Activation activation) {
  launches_.submit(stream, "conv_forward", [=](auto& launch) {
    submit_direct_convolution(launch, x, weights, bias, y, options, activation);
  });
}

template <typename Launches>
void GpuKernels<Launches>::conv_bias_backward(Stream& stream, const TensorView& x, const TensorView& weights,
                                              const TensorView& bias, const TensorView& dy,
                                              const TensorView& dbias, const ConvOptions& options,
                                              Activation activation) {
  check::conv_bias("conv_bias_backward", x, weights, bias, dy, dbias, options, kHalf,
                   check::half_weights(options.precision));
  check::recomputed("conv_bias_backward", weights, computes_directly(dy.dtype, weights.shape, options));
  launches_.submit(stream, "conv_bias_backward", reduction_scratch_bytes(dy), [=](auto& launch, void* scratch) {
    submit_direct_bias_gradient(launch, x, weights, bias, dy, dbias, options, activation, scratch);
  });
}

}  // namespace headrace::cuda
