#include "headrace/devices/cuda/math/cuda_launches.h"

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/device.h"

namespace headrace::cuda {

// The type of the stream may come from another module, so its device's kind is asked, not its type information.
std::optional<cudaStream_t> CudaLaunches::enter(Stream& stream) const {
  const DeviceInfo& info = stream.device().info();
  if (info.kind != DeviceKind::kCuda || info.ordinal != ordinal_) {
    throw DeviceError(ErrorCode::kInvalidArgument, "a GPU's mathematics was submitted to another device's stream",
                      info.name, "use the kernels() of the device that made the stream");
  }
  const CudaStream& mine = static_cast<CudaStream&>(stream);
  if (mine.skips()) return std::nullopt;
  CUDA_CHECK(cudaSetDevice(ordinal_), device_);
  return mine.handle();
}

void CudaLaunches::need(cudaError_t status, const char* kernel) const {
  if (status != cudaSuccess) detail::throw_cuda_error(status, kernel, device_);
}

}  // namespace headrace::cuda
