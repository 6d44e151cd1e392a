// The fused input kernel's host side. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/input_kernels.h"

namespace headrace {

// Out: float or BFloat16. out = pixel * scale[c] + shift[c] over `images` images of `pixels` pixels of `channels`
// bytes each. All pointers are on the current device. Returns the status of the launch; no images are no launch.
template <typename Out>
struct InputKernelArguments {
  const std::uint8_t* in;
  const float* scale;
  const float* shift;
  Out* out;
  std::int64_t images;
  std::int64_t pixels;
  int channels;
};
template <typename Out>
cudaError_t launch_input_kernel(const InputKernelArguments<Out>& arguments, ImageLayout layout,
                                cudaStream_t stream);

}  // namespace headrace
