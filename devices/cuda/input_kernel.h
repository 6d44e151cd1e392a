// The input kernels' host side. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include "headrace/devices/cuda/input_work.h"

namespace headrace {

// Loads the kernels of each family on the current device.
cudaError_t load_image_kernels();
cudaError_t load_window_kernels();
cudaError_t load_jpeg_kernels();

// Return the status of the launch; without output nothing is launched. REQUIRE: all pointers are on the current
// device.
template <typename Out>
cudaError_t launch_input_kernel(const cuda::ImageWork<Out>& work, ImageLayout layout, cudaStream_t stream);
template <typename Out>
cudaError_t launch_input_kernel(const cuda::WindowWork<Out>& work, ImageLayout layout, cudaStream_t stream);

cudaError_t launch_jpeg_kernels(const JpegDecoding& decoding, cudaStream_t stream);

}  // namespace headrace
