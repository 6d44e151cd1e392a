#include "headrace/devices/cuda/math/shift_images.h"

#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/shift_images_work.h"

namespace headrace::cuda {

cudaError_t shift_images(const TensorView& x, const ImageShift& shift, const TensorView& y, cudaStream_t stream) {
  CudaLauncher launch(stream);
  submit_shift_images(launch, x, shift, y);
  return launch.status();
}

}  // namespace headrace::cuda
