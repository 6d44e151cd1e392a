#include "headrace/devices/cuda/cuda_input_kernels.h"

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/input_kernel.h"
#include "headrace/devices/cuda/window_kernel.h"
#include "headrace/devices/device.h"

namespace headrace {
namespace {

template <typename Out>
InputKernelArguments<Out> whole_images(const PixelConversion& conversion) {
  const Shape& shape = conversion.pixels.shape;
  return {.in = conversion.pixels.as<const std::uint8_t>(),
          .scale = conversion.scale.as<const float>(),
          .shift = conversion.shift.as<const float>(),
          .out = conversion.out.as<Out>(),
          .images = shape[0],
          .pixels = shape[1] * shape[2],
          .channels = static_cast<int>(shape[3])};
}

}  // namespace

void CudaInputKernels::convert_pixels(Stream& stream, const PixelConversion& conversion) {
  check_pixel_conversion(conversion);
  auto* mine = dynamic_cast<CudaStream*>(&stream);
  const DeviceInfo& device = stream.device().info();
  if (mine == nullptr) throw ConfigError(device.name + ": the stream is not one of a GPU");
  if (mine->skips()) return;
  CUDA_CHECK(cudaSetDevice(device.ordinal), device.name);
  const bool whole = !conversion.windows.defined() && !conversion.picks.defined() && !conversion.tones.defined();
  cuda::by_type(conversion.out.dtype, [&]<typename Out>(Out) {
    if (whole) {
      CUDA_CHECK(launch_input_kernel(whole_images<Out>(conversion), conversion.layout, mine->handle()),
                 device.name);
    } else {
      const auto work = cuda::window_work<Out>(conversion);
      CUDA_CHECK(launch_window_kernel(work, conversion.layout, mine->handle()), device.name);
    }
  });
}

}  // namespace headrace
