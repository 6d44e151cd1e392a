// Kernels that are loaded before they are needed. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

namespace headrace::cuda {

// On the current device. CUDA loads a kernel when it is first used, and may wait for the GPU to do it: for ever,
// where a kernel is waiting there for one that comes later (rendezvous.h).
template <typename... Kernels>
cudaError_t load_kernels(Kernels*... kernels) {
  cudaFuncAttributes attributes{};
  cudaError_t status = cudaSuccess;
  const auto load = [&](const void* kernel) {
    if (status == cudaSuccess) status = cudaFuncGetAttributes(&attributes, kernel);
  };
  (load(reinterpret_cast<const void*>(kernels)), ...);
  return status;
}

}  // namespace headrace::cuda
