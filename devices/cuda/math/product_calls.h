// The work around the products of GpuKernels: checks, and biases and activations that no library has fused.
// Private to the CUDA backend.
#pragma once

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"

namespace headrace::cuda {

template <typename Launches>
void GpuKernels<Launches>::dense_forward(Stream& stream, const TensorView& x, const TensorView& weights,
                                         const TensorView& bias, const TensorView& y, Activation activation,
                                         Precision precision) {
  check::fused("dense_forward", activation);
  check::dense("dense_forward", x, weights, bias, y, kHalf, check::half_weights(precision));
  const bool added = products_add_bias(activation);
  dense_product(stream, x, weights, added ? bias : TensorView{}, y, precision);
  if (activation == Activation::kNone) return;
  bias_activation(stream, "dense_forward", y, added ? TensorView{} : bias, activation);
}

template <typename Launches>
void GpuKernels<Launches>::dense_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights,
                                               const TensorView& dx, Precision precision) {
  check::dense("dense_backward_data", dx, weights, {}, dy, kHalf, check::half_weights(precision));
  dense_data_gradient(stream, dy, weights, dx, precision);
}

template <typename Launches>
void GpuKernels<Launches>::dense_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                                                  const TensorView& dweights, const TensorView& dbias,
                                                  Precision precision) {
  check::dense("dense_backward_weights", x, dweights, dbias, dy, kHalf);
  dense_weights_gradient(stream, x, dy, dweights, precision);
  bias_gradient(stream, "dense_backward_weights", dy, dbias);
}

template <typename Launches>
void GpuKernels<Launches>::batched_matmul(Stream& stream, const Matrices& a, const Matrices& b, float alpha,
                                          const Matrices& result, Precision precision) {
  check::batched_matmul("batched_matmul", a, b, result, kHalf);
  batched_product(stream, a, b, alpha, result, precision);
}

template <typename Launches>
void GpuKernels<Launches>::conv_forward(Stream& stream, const TensorView& x, const TensorView& weights,
                                        const TensorView& bias, const TensorView& y, const ConvOptions& options,
                                        Activation activation) {
  check::fused("conv_forward", activation);
  check::convolution("conv_forward", x, weights, bias, y, options, kHalf, check::half_weights(options.precision));
  if (x.dtype == y.dtype && computes_directly(x.dtype, weights.shape, options)) {
    return direct_conv_forward(stream, x, weights, bias, y, options, activation);
  }
  const bool added = products_add_bias(activation);
  conv_product(stream, x, weights, added ? bias : TensorView{}, y, options);
  if (activation == Activation::kNone) return;
  bias_activation(stream, "conv_forward", y, added ? TensorView{} : bias, activation);
}

template <typename Launches>
void GpuKernels<Launches>::conv_backward_data(Stream& stream, const TensorView& dy, const TensorView& weights,
                                              const TensorView& dx, const ConvOptions& options) {
  check::convolution("conv_backward_data", dx, weights, {}, dy, options, kHalf,
                     check::half_weights(options.precision));
  conv_data_gradient(stream, dy, weights, dx, options);
}

template <typename Launches>
void GpuKernels<Launches>::conv_backward_weights(Stream& stream, const TensorView& x, const TensorView& dy,
                                                 const TensorView& dweights, const TensorView& dbias,
                                                 const ConvOptions& options) {
  if (dweights.defined()) {
    check::convolution("conv_backward_weights", x, dweights, dbias, dy, options, kHalf);
    conv_weights_gradient(stream, x, dy, dweights, options);
  }
  bias_gradient(stream, "conv_backward_weights", dy, dbias);
}

template <typename Launches>
void GpuKernels<Launches>::add_bias(Stream& stream, const TensorView& bias, const TensorView& y,
                                    Activation activation) {
  check::add_bias("add_bias", bias, y, activation, kHalf);
  bias_activation(stream, "add_bias", y, bias, activation);
}

}  // namespace headrace::cuda
