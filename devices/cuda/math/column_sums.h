// Sums over the rows of a matrix. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "headrace/devices/tensor.h"

namespace headrace::cuda {

// sums[c] = sum over all axes but the last, in one fixed order. matrix f32 or bf16, sums f32, scratch of
// reduction_scratch_bytes(matrix), all on the current device. Returns the status of the launches.
cudaError_t column_sums(const TensorView& matrix, const TensorView& sums, void* scratch, cudaStream_t stream);

}  // namespace headrace::cuda
