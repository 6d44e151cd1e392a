// CUDA_CHECK: turns CUDA's status codes into exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "headrace/devices/buffer.h"

namespace headrace::detail {

// Throws a DeviceError that names the call, the device, CUDA's reason and what to try.
[[noreturn]] void throw_cuda_error(cudaError_t status, const char* call, const std::string& device);

}  // namespace headrace::detail

#define CUDA_CHECK(call, device)                                              \
  do {                                                                        \
    const cudaError_t cuda_check_status = (call);                             \
    if (cuda_check_status != cudaSuccess) [[unlikely]]                        \
      ::headrace::detail::throw_cuda_error(cuda_check_status, #call, device); \
  } while (false)

namespace headrace {

class Device;

// Throws the error of an allocation for which a GPU or the host has no room. REQUIRES: `device` is current.
[[noreturn]] void throw_out_of_memory(const Device& device, std::size_t bytes, MemoryPlace place);

}  // namespace headrace
