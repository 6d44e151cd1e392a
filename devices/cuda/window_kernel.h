// The fused input kernel for windows of padded images: its host side. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "headrace/devices/input_kernels.h"

namespace headrace {

// Extents in pixels; an image and a window have fewer than 2^31 elements each.
struct WindowKernelArguments {
  const std::uint8_t* in;      // (images, height, width, channels)
  const PixelWindow* windows;  // one an image, within the padded image
  const float* scale;
  const float* shift;
  float* out;  // (images, out_height, out_width, channels), or channels before the pixels
  std::int64_t images;
  int height, width;
  int out_height, out_width;
  int channels;
  int pad;
  PixelBorder border;
};

// All pointers are on the current device. Returns the status of the launch; nothing to write is no launch.
cudaError_t launch_window_kernel(const WindowKernelArguments& arguments, ImageLayout layout, cudaStream_t stream);

}  // namespace headrace
