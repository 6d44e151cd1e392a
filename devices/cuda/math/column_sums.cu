#include "headrace/devices/cuda/math/column_sums.h"

#include "headrace/devices/cuda/math/column_sums_work.h"
#include "headrace/devices/cuda/math/cuda_launcher.cuh"

namespace headrace::cuda {

cudaError_t column_sums(const TensorView& matrix, const TensorView& sums, void* scratch, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_column_sums(launch, matrix, sums, scratch);
  return launch.status();
}

}  // namespace headrace::cuda
