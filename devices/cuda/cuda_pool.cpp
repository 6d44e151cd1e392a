#include "headrace/devices/cuda/cuda_pool.h"

#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "headrace/devices/cuda/cuda_check.h"

namespace headrace {

namespace {

using SharedPool = std::shared_ptr<CUmemPoolHandle_st>;

SharedPool make_pool(int ordinal, const std::string& device) {
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = ordinal;
  cudaMemPool_t made = nullptr;
  CUDA_CHECK(cudaMemPoolCreate(&made, &properties), device);
  SharedPool pool(made, [](cudaMemPool_t last) { cudaMemPoolDestroy(last); });
  std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
  CUDA_CHECK(cudaMemPoolSetAttribute(made, cudaMemPoolAttrReleaseThreshold, &keep), device);
  return pool;
}

// Returns the pool of the GPU's replicas in this process.
SharedPool pool_of(int ordinal, const std::string& device) {
  static std::mutex mutex;
  static std::map<int, std::weak_ptr<CUmemPoolHandle_st>> pools;  // by mutex
  const std::lock_guard lock(mutex);
  std::weak_ptr<CUmemPoolHandle_st>& known = pools[ordinal];
  SharedPool pool = known.lock();
  if (!pool) known = pool = make_pool(ordinal, device);
  return pool;
}

}  // namespace

CudaPool::CudaPool(int ordinal, std::string device) : device_(std::move(device)) {
  int supported = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, ordinal), device_);
  if (supported != 0) pool_ = pool_of(ordinal, device_);
}

void* CudaPool::allocate(std::size_t bytes, cudaStream_t stream) {
  const auto attempt = [&](void*& data) {
    return pool_ != nullptr ? cudaMallocFromPoolAsync(&data, bytes, pool_.get(), stream) : cudaMalloc(&data, bytes);
  };
  void* data = nullptr;
  cudaError_t status = attempt(data);
  if (status == cudaErrorMemoryAllocation && pool_ != nullptr) {
    cudaGetLastError();
    CUDA_CHECK(cudaStreamSynchronize(stream), device_);  // the memory that it released is idle then
    trim();
    status = attempt(data);
  }
  if (status == cudaErrorMemoryAllocation || status == cudaErrorInvalidValue) return nullptr;
  if (status != cudaSuccess) {
    detail::throw_cuda_error(status, pool_ != nullptr ? "cudaMallocFromPoolAsync" : "cudaMalloc", device_);
  }
  used_ += bytes;
  return data;
}

void CudaPool::release(void* data, std::size_t bytes, cudaStream_t stream) noexcept {
  // A failure to free cannot be reported: the device is lost, and its streams report that.
  if (pool_ != nullptr) {
    cudaFreeAsync(data, stream);
  } else {
    cudaFree(data);
  }
  used_ -= bytes;
}

std::uint64_t CudaPool::idle_bytes() const noexcept {
  std::uint64_t reserved = 0, used = 0;
  if (pool_ == nullptr) return 0;
  cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrReservedMemCurrent, &reserved);
  cudaMemPoolGetAttribute(pool_.get(), cudaMemPoolAttrUsedMemCurrent, &used);
  return reserved > used ? reserved - used : 0;
}

void CudaPool::trim() noexcept {
  if (pool_ != nullptr) cudaMemPoolTrimTo(pool_.get(), 0);
}

}  // namespace headrace
