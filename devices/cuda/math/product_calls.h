// The work around the products of GpuKernels: biases and activations that no library has fused. Private to the
// CUDA backend.
#pragma once

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"

namespace headrace::cuda {

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::DenseForward& of) {
  product_and_activation(stream, of);
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::DenseBackwardData& of) {
  product(stream, of);
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::DenseBackwardWeights& of) {
  product(stream, without_bias(of));
  bias_gradient(stream, name_of(of), of.dy, of.dbias);
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::BatchedMatmul& of) {
  product(stream, of);
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::ConvForward& of) {
  if (of.x.dtype == of.y.dtype && computes_directly(of.x.dtype, of.weights.shape, of.options)) {
    return convolve_directly(stream, of);
  }
  product_and_activation(stream, of);
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::ConvBackwardData& of) {
  product(stream, of);
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::ConvBackwardWeights& of) {
  if (of.dweights.defined()) product(stream, without_bias(of));
  bias_gradient(stream, name_of(of), of.dy, of.dbias);
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::Muon& of) {
  product(stream, of);
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::AddBias& of) {
  bias_activation(stream, name_of(of), of.y, of.bias, of.activation);
}

}  // namespace headrace::cuda
