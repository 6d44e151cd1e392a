// A GPU's memory in stream order: CUDA's own pool, which keeps what is given back. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace headrace {

// Thread-safe. Calls want the pool's device to be the current one.
class CudaPool {
 public:
  CudaPool(int ordinal, std::string device);
  ~CudaPool();  // gives everything back to the system; nothing of it may be in use
  CudaPool(const CudaPool&) = delete;
  CudaPool& operator=(const CudaPool&) = delete;

  // For work of the stream from now on; null where there is no memory, also after what was kept was given up.
  void* allocate(std::size_t bytes, cudaStream_t stream);
  // Behind the stream's work so far.
  void release(void* data, std::size_t bytes, cudaStream_t stream) noexcept;

  std::uint64_t used_bytes() const noexcept { return used_; }
  // Kept, and in nobody's use.
  std::uint64_t idle_bytes() const noexcept;
  // Gives to the system what is idle.
  void trim() noexcept;

 private:
  std::string device_;
  cudaMemPool_t pool_ = nullptr;  // null where the GPU has none: then memory comes from cudaMalloc
  std::atomic<std::uint64_t> used_{0};
};

}  // namespace headrace
