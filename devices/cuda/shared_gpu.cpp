#include "headrace/devices/cuda/shared_gpu.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/cuda/rendezvous.h"

namespace headrace {

std::shared_ptr<SharedGpu> SharedGpu::of(int ordinal, const std::string& device) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<SharedGpu>> gpus;  // by mutex
  const std::lock_guard lock(mutex);
  std::weak_ptr<SharedGpu>& known = gpus[ordinal];
  std::shared_ptr<SharedGpu> gpu = known.lock();
  if (!gpu) known = gpu = std::shared_ptr<SharedGpu>(new SharedGpu(ordinal, device));
  return gpu;
}

SharedGpu::SharedGpu(int ordinal, const std::string& device) {
  int supported = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, ordinal), device);
  if (supported == 0) return;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = ordinal;
  CUDA_CHECK(cudaMemPoolCreate(&pool_, &properties), device);
  std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
  // No allocation waits for another stream: its replica may wait for this one.
  int waits = 0;
  cudaError_t status = cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep);
  if (status == cudaSuccess)
    status = cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &waits);
  if (status == cudaSuccess) return;
  cudaMemPoolDestroy(pool_);
  detail::throw_cuda_error(status, "cudaMemPoolSetAttribute", device);
}

SharedGpu::~SharedGpu() {
  if (pool_ != nullptr) cudaMemPoolDestroy(pool_);
}

SharedGpu::OpenStream::OpenStream(std::shared_ptr<SharedGpu> gpu, const std::string& device)
    : gpu_(std::move(gpu)) {
  const int before = gpu_->streams_++;
  if (before < cuda::kMaxQueues || gpu_->meetings_ == 0) return;
  --gpu_->streams_;
  throw DeviceError(
      ErrorCode::kUnsupported,
      fmt::format(
          "there are {} streams on its GPU, where replicas wait for one another: another might never start",
          before),
      device, "close loaders that are no longer needed, or use fewer replicas, as in cuda:0x4");
}

void* CudaPool::allocate(std::size_t bytes, cudaStream_t stream) {
  const cudaMemPool_t pool = gpu_->pool();
  const auto attempt = [&](void*& data) {
    return pool != nullptr ? cudaMallocFromPoolAsync(&data, bytes, pool, stream) : cudaMalloc(&data, bytes);
  };
  void* data = nullptr;
  cudaError_t status = attempt(data);
  if (status == cudaErrorMemoryAllocation && pool != nullptr) {
    cudaGetLastError();
    CUDA_CHECK(cudaStreamSynchronize(stream), device_);  // the memory that it released is idle then
    trim();
    status = attempt(data);
  }
  if (status == cudaErrorMemoryAllocation || status == cudaErrorInvalidValue) return nullptr;
  if (status != cudaSuccess) {
    detail::throw_cuda_error(status, pool != nullptr ? "cudaMallocFromPoolAsync" : "cudaMalloc", device_);
  }
  used_ += bytes;
  return data;
}

void CudaPool::release(void* data, std::size_t bytes, cudaStream_t stream) noexcept {
  // A failure to free cannot be reported: the device is lost, and its streams report that.
  if (gpu_->pool() != nullptr) {
    cudaFreeAsync(data, stream);
  } else {
    cudaFree(data);
  }
  used_ -= bytes;
}

std::uint64_t CudaPool::idle_bytes() const noexcept {
  std::uint64_t reserved = 0, used = 0;
  if (gpu_->pool() == nullptr) return 0;
  cudaMemPoolGetAttribute(gpu_->pool(), cudaMemPoolAttrReservedMemCurrent, &reserved);
  cudaMemPoolGetAttribute(gpu_->pool(), cudaMemPoolAttrUsedMemCurrent, &used);
  return reserved > used ? reserved - used : 0;
}

void CudaPool::trim() noexcept {
  if (gpu_->pool() != nullptr) cudaMemPoolTrimTo(gpu_->pool(), 0);
}

}  // namespace headrace
