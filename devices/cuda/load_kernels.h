// Kernels that are loaded before they are needed. Private to the CUDA backend.
#pragma once

#include <cuda_runtime_api.h>

namespace headrace::cuda {

// Loads kernels on the current device. CUDA otherwise loads a kernel on first use, and may wait for the GPU to do
// so: forever, if a kernel is waiting there for a later one (rendezvous.h).
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
