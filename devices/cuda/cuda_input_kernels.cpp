#include "headrace/devices/cuda/cuda_input_kernels.h"

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/input_kernel.h"
#include "headrace/devices/cuda/window_kernel.h"
#include "headrace/devices/device.h"

namespace headrace {
namespace {

InputKernelArguments whole_images(const PixelConversion& conversion) {
  const Shape& shape = conversion.pixels.shape;
  return {.in = conversion.pixels.as<const std::uint8_t>(),
          .scale = conversion.scale.as<const float>(),
          .shift = conversion.shift.as<const float>(),
          .out = conversion.out.as<float>(),
          .images = shape[0],
          .pixels = shape[1] * shape[2],
          .channels = static_cast<int>(shape[3])};
}

// The extents fit into int: check_pixel_conversion() has seen to it.
WindowKernelArguments windows(const PixelConversion& conversion) {
  const Shape& in = conversion.pixels.shape;
  const Shape& out = conversion.out.shape;
  const int rows = conversion.layout == ImageLayout::kChannelsLast ? 1 : 2;  // axis of the output
  return {.in = conversion.pixels.as<const std::uint8_t>(),
          .windows = conversion.windows.as<const PixelWindow>(),
          .scale = conversion.scale.as<const float>(),
          .shift = conversion.shift.as<const float>(),
          .out = conversion.out.as<float>(),
          .images = in[0],
          .height = static_cast<int>(in[1]),
          .width = static_cast<int>(in[2]),
          .out_height = static_cast<int>(out[rows]),
          .out_width = static_cast<int>(out[rows + 1]),
          .channels = static_cast<int>(in[3]),
          .pad = static_cast<int>(conversion.pad),
          .border = conversion.border};
}

}  // namespace

void CudaInputKernels::convert_pixels(Stream& stream, const PixelConversion& conversion) {
  check_pixel_conversion(conversion);
  auto* mine = dynamic_cast<CudaStream*>(&stream);
  const DeviceInfo& device = stream.device().info();
  if (mine == nullptr) throw ConfigError(device.name + ": the stream is not one of a GPU");
  if (mine->skips()) return;
  CUDA_CHECK(cudaSetDevice(device.ordinal), device.name);
  if (conversion.windows.defined()) {
    CUDA_CHECK(launch_window_kernel(windows(conversion), conversion.layout, mine->handle()), device.name);
  } else {
    CUDA_CHECK(launch_input_kernel(whole_images(conversion), conversion.layout, mine->handle()), device.name);
  }
}

}  // namespace headrace
