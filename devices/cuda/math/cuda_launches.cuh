// How CudaLaunches submits kernels. Private to the CUDA backend.
#pragma once

#include "headrace/devices/cuda/math/cuda_launcher.cuh"
#include "headrace/devices/cuda/math/cuda_launches.h"

namespace headrace::cuda {

template <typename Work>
void CudaLaunches::submit(Stream& stream, const char* kernel, const Work& work) {
  const std::optional<cudaStream_t> handle = enter(stream);
  if (!handle) return;
  CudaLauncher launch(*handle);
  work(launch);
  need(launch.status(), kernel);
}

template <typename Work>
void CudaLaunches::submit(Stream& stream, const char* kernel, std::size_t scratch_bytes, const Work& work) {
  const std::optional<cudaStream_t> handle = enter(stream);
  if (!handle) return;
  CudaLauncher launch(*handle);
  work(launch, scratch_.reserve(*handle, scratch_bytes));
  need(launch.status(), kernel);
}

}  // namespace headrace::cuda
