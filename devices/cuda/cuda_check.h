// CUDA_CHECK: the one way CUDA's status codes become exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace headrace::detail {

// Throws the DeviceError that names the call, the device, CUDA's reason and what to try.
[[noreturn]] void throw_cuda_error(cudaError_t status, const char* call, const std::string& device);

}  // namespace headrace::detail

#define CUDA_CHECK(call, device)                                              \
  do {                                                                        \
    const cudaError_t cuda_check_status = (call);                             \
    if (cuda_check_status != cudaSuccess) [[unlikely]]                        \
      ::headrace::detail::throw_cuda_error(cuda_check_status, #call, device); \
  } while (false)
