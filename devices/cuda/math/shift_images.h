// shift_images, as Kernels has it, on the current device; images are f32 or bf16. Returns the status of its
// launch. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/kernels.h"

namespace headrace::cuda {

cudaError_t shift_images(const TensorView& x, const ImageShift& shift, const TensorView& y, cudaStream_t stream);

}  // namespace headrace::cuda
