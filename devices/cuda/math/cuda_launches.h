// Submits a GPU's work in the order of a stream. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "headrace/devices/cuda/math/stream_scratch.h"
#include "headrace/devices/stream.h"

namespace headrace::cuda {

// Thread-safe over streams. Throws DeviceError: kInvalidArgument for another device's stream.
class CudaLaunches {
 public:
  // REQUIRES: the device outlives it, as it does all of its kernels.
  explicit CudaLaunches(Device& device)
      : ordinal_(device.info().ordinal), device_(device.info().name), scratch_(device) {}

  // Makes the device current and returns the handle; std::nullopt if the stream has failed, so that work must be
  // skipped.
  std::optional<cudaStream_t> enter(Stream& stream) const;

  // Required by GpuKernels (cuda_launcher.cuh).
  template <typename Work>
  void submit(Stream& stream, const char* kernel, const Work& work);
  template <typename Work>
  void submit(Stream& stream, const char* kernel, std::size_t scratch_bytes, const Work& work);

 private:
  void need(cudaError_t status, const char* kernel) const;

  int ordinal_;
  std::string device_;
  StreamScratch scratch_;
};

// The number of a kernel's blocks of `threads` that the current device holds at once: its multiprocessors times
// the blocks for which each has registers and shared memory. A grid of that size is one wave, without a tail of a
// few blocks. CUDA is asked once per device. Thread-safe.
class ResidentBlocks {
 public:
  ResidentBlocks(const void* kernel, int threads) : kernel_(kernel), threads_(threads) {}

  cudaError_t of_current_device(std::int64_t& blocks);

 private:
  static constexpr std::size_t kMaxDevices = 16;  // further devices ask each time

  const void* kernel_;
  int threads_;
  std::array<std::atomic<std::int64_t>, kMaxDevices> known_{};  // 0: unknown
};

}  // namespace headrace::cuda
