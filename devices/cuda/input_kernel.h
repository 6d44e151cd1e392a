// The fused input kernel's host side. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "headrace/devices/input_kernels.h"

namespace headrace {

// out = pixel * scale[c] + shift[c] over `images` images of `pixels` pixels of `channels` bytes each. All
// pointers are on the current device. Returns the status of the launch; no images are no launch.
struct InputKernelArguments {
  const std::uint8_t* in;
  const float* scale;
  const float* shift;
  float* out;
  std::int64_t images;
  std::int64_t pixels;
  int channels;
};
cudaError_t launch_input_kernel(const InputKernelArguments& arguments, ImageLayout layout, cudaStream_t stream);

}  // namespace headrace
