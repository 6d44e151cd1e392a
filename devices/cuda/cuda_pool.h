// A GPU's memory in stream order: CUDA's own pool, which keeps released memory. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace headrace {

// Thread-safe. REQUIRES: the pool's device is current in calls.
class CudaPool {
 public:
  CudaPool(int ordinal, std::string device);
  ~CudaPool();  // returns everything to the system; none of it may be in use
  CudaPool(const CudaPool&) = delete;
  CudaPool& operator=(const CudaPool&) = delete;

  // Allocates for work of the stream from now on; null if there is no memory, even after trimming kept memory.
  void* allocate(std::size_t bytes, cudaStream_t stream);
  // Releases memory after the stream's work so far.
  void release(void* data, std::size_t bytes, cudaStream_t stream) noexcept;

  std::uint64_t used_bytes() const noexcept { return used_; }
  // Returns the bytes that are kept but unused.
  std::uint64_t idle_bytes() const noexcept;
  // Returns idle memory to the system.
  void trim() noexcept;

 private:
  std::string device_;
  cudaMemPool_t pool_ = nullptr;  // null if the GPU has none: then memory comes from cudaMalloc
  std::atomic<std::uint64_t> used_{0};
};

}  // namespace headrace
