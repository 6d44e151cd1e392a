#include "headrace/devices/cuda/math/resident_blocks.h"

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
