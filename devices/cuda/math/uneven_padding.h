// Convolutions whose padding differs between opposite sides, as Keras's "same" padding with strides. cuDNN 9.19
// has plans that compute them wrongly: the gradient of 3 x 3 weights with stride 2 over 4 x 4 pixels, padded below
// and on the right alone, was that of other windows. So the images are extended by zeros until what is left to pad
// is even. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "headrace/devices/cuda/math/convolution_problem.h"
#include "headrace/devices/tensor.h"

namespace headrace::cuda {

// Returns the problem of the same result with equal padding on opposite sides: x has the rows and columns more
// that one side was padded more than the other. Returns `problem` if that is so already.
ConvolutionProblem with_even_padding(const ConvolutionProblem& problem);

// Submits a copy of x to `extended`, an x of with_even_padding(problem), with zeros around it.
cudaError_t extend(const ConvolutionProblem& problem, const TensorView& x, std::byte* extended,
                   cudaStream_t stream);
// Submits a copy of the part of `extended` that is x.
cudaError_t crop(const ConvolutionProblem& problem, std::byte* extended, const TensorView& x, cudaStream_t stream);

}  // namespace headrace::cuda
