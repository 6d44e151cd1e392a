#include "headrace/devices/cuda/math/cuda_launches.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/cuda_stream.h"
#include "headrace/devices/device.h"

namespace headrace::cuda {
namespace {

cudaError_t ask(const void* kernel, int threads, int device, std::int64_t& blocks) {
  int multiprocessors = 0, of_each = 0;
  cudaError_t status = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
  if (status == cudaSuccess) {
    status = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, kernel, threads, 0);
  }
  blocks = std::int64_t{multiprocessors} * of_each;
  return status == cudaSuccess && blocks < 1 ? cudaErrorInvalidConfiguration : status;
}

}  // namespace

// The type of the stream may come from another module, so this checks its device's kind, not its type information.
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

cudaError_t ResidentBlocks::of_current_device(std::int64_t& blocks) {
  int device = 0;
  if (const cudaError_t status = cudaGetDevice(&device); status != cudaSuccess) return status;
  const auto index = static_cast<std::size_t>(device);
  blocks = index < kMaxDevices ? known_[index].load(std::memory_order_relaxed) : 0;
  if (blocks > 0) return cudaSuccess;
  const cudaError_t status = ask(kernel_, threads_, device, blocks);
  if (status == cudaSuccess && index < kMaxDevices) known_[index].store(blocks, std::memory_order_relaxed);
  return status;
}

}  // namespace headrace::cuda
