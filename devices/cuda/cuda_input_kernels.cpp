#include "headrace/devices/cuda/cuda_input_kernels.h"

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/cuda/input_kernel.h"
#include "headrace/devices/device.h"

namespace headrace {

void CudaInputKernels::convert_pixels(Stream& stream, const PixelConversion& conversion) {
  check_pixel_conversion(conversion);
  auto* mine = dynamic_cast<CudaStream*>(&stream);
  const DeviceInfo& device = stream.device().info();
  if (mine == nullptr) throw ConfigError(device.name + ": the stream is not one of a GPU");
  if (mine->skips()) return;
  CUDA_CHECK(cudaSetDevice(device.ordinal), device.name);
  cuda::by_input_work(conversion, [&](const auto& work) {
    CUDA_CHECK(launch_input_kernel(work, conversion.layout, mine->handle()), device.name);
  });
}

}  // namespace headrace
