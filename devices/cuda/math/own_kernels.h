// What our own kernels do beside the libraries': biases, conversions, convolutions of few channels. Private to the
// CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "headrace/devices/kernel_options.h"
#include "headrace/devices/tensor.h"

namespace headrace::cuda {

// A bias that no library kernel has added.

// Computes y += bias. y is f32 or bf16 of shape (..., C), the bias f32 (C). Returns the status of the launch.
cudaError_t add_bias(const TensorView& y, const TensorView& bias, cudaStream_t stream);

// Conversion between f32 and bf16.

// Copies `from` to `to`, rounding to the nearest if `to` is narrower. Both f32 or bf16, of one shape, on the
// current device. Returns the status of the launch.
cudaError_t convert(const TensorView& from, const TensorView& to, cudaStream_t stream);

// Convolutions on our own tensor core kernels, where they are faster than cuDNN's.

// Returns whether these tensors are convolved here: bf16, 3 x 3 windows over 24 channels with 64 outputs, padded
// by a pixel. Within a step over 2000 images of 31 x 31 pixels on an H200, the forward pass is 1.6 times as fast
// as cuDNN's tuned plan, the gradients of x and of the weights 1.4 and 1.3 times.
bool fits_narrow_kernels(const TensorView& x, const TensorView& weights, const TensorView& y,
                         const ConvOptions& options);
// Returns whether the gradient of the weights is computed here: as above, with f32 weights.
bool fits_narrow_weight_gradient(const TensorView& x, const TensorView& dy, const TensorView& dweights,
                                 const ConvOptions& options);

// y = x * weights; dx = dy * weights turned around. REQUIRES: fits_narrow_kernels().
cudaError_t narrow_forward(const TensorView& x, const TensorView& weights, const TensorView& y,
                           cudaStream_t stream);
cudaError_t narrow_input_gradient(const TensorView& dy, const TensorView& weights, const TensorView& dx,
                                  cudaStream_t stream);
// The same bits on every GPU of an architecture. REQUIRES: fits_narrow_weight_gradient(); narrow_scratch_bytes()
// of scratch memory.
cudaError_t narrow_weight_gradient(const TensorView& x, const TensorView& dy, const TensorView& dweights,
                                   void* scratch, cudaStream_t stream);
std::size_t narrow_scratch_bytes();

}  // namespace headrace::cuda
