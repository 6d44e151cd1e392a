// How large a grid fills a GPU once. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdint>

namespace headrace::cuda {

// A kernel's blocks of `threads` that the current device holds at the same time: its multiprocessors times the
// blocks that one of them has registers and shared memory for. A grid of so many is one wave, without a tail of a
// few blocks behind it. CUDA is asked once per device. Thread-safe.
class ResidentBlocks {
 public:
  ResidentBlocks(const void* kernel, int threads) : kernel_(kernel), threads_(threads) {}

  cudaError_t of_current_device(std::int64_t& blocks);

 private:
  static constexpr std::size_t kMaxDevices = 16;  // of more, the rest ask each time

  const void* kernel_;
  int threads_;
  std::array<std::atomic<std::int64_t>, kMaxDevices> known_{};  // 0: not yet
};

}  // namespace headrace::cuda
