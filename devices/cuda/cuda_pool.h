// A GPU's memory in stream order: CUDA's own pool, which keeps released memory. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace headrace {

// One replica's part of its GPU's pool. What a replica released, another one of the GPU gets; the last of them
// returns everything to the system, and none of it may be in use then. Thread-safe. REQUIRES: the GPU is current in
// calls.
class CudaPool {
 public:
  CudaPool(int ordinal, std::string device);

  // Allocates for work of the stream from now on; null if there is no memory, even after trimming kept memory.
  void* allocate(std::size_t bytes, cudaStream_t stream);
  // Releases memory after the stream's work so far.
  void release(void* data, std::size_t bytes, cudaStream_t stream) noexcept;

  // Returns the bytes that this replica uses.
  std::uint64_t used_bytes() const noexcept { return used_; }
  // Returns the GPU's bytes that are kept but unused.
  std::uint64_t idle_bytes() const noexcept;
  // Returns idle memory to the system.
  void trim() noexcept;

 private:
  std::string device_;
  std::shared_ptr<CUmemPoolHandle_st> pool_;  // null if the GPU has none: then memory comes from cudaMalloc
  std::atomic<std::uint64_t> used_{0};
};

}  // namespace headrace
