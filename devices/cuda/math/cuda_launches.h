// Submits a GPU's work in the order of a stream. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <optional>
#include <string>

#include "headrace/devices/cuda/math/stream_scratch.h"
#include "headrace/devices/stream.h"

namespace headrace::cuda {

// Thread-safe over streams. Throws DeviceError: kInvalidArgument for another device's stream.
class CudaLaunches {
 public:
  // Of GPU `ordinal`, called `device` in errors.
  CudaLaunches(int ordinal, const std::string& device) : ordinal_(ordinal), device_(device), scratch_(device) {}

  // The handle, with the device current; none where the stream has failed, when work is to be skipped.
  std::optional<cudaStream_t> enter(Stream& stream) const;

  // As GpuKernels needs it (cuda_launches.cuh).
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

}  // namespace headrace::cuda
