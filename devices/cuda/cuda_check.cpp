#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/devices/cuda/cuda_check.h"
#include "headrace/devices/device.h"

namespace headrace::detail {
namespace {

ErrorCode code_of(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation: return ErrorCode::kOutOfMemory;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice: return ErrorCode::kNotFound;
    case cudaErrorInvalidValue: return ErrorCode::kInvalidArgument;
    case cudaErrorNoKernelImageForDevice: return ErrorCode::kUnsupported;
    default: return ErrorCode::kDevice;
  }
}

const char* hint_for(cudaError_t status) {
  switch (status) {
    case cudaErrorMemoryAllocation: return "a smaller batch or fewer batches in flight need less";
    case cudaErrorInsufficientDriver:
      return "the NVIDIA driver is older than this build's CUDA: update the driver";
    case cudaErrorNoDevice: return "no GPU is visible: see nvidia-smi and CUDA_VISIBLE_DEVICES";
    case cudaErrorNoKernelImageForDevice: return "rebuild with this GPU in CMAKE_CUDA_ARCHITECTURES";
    case cudaErrorDevicesUnavailable: return "the GPU is held by another process in exclusive mode";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure: return "an earlier kernel of this process failed; start it again";
    default: return "see nvidia-smi and the kernel log for the GPU's state";
  }
}

}  // namespace

void throw_cuda_error(cudaError_t status, const char* call, const std::string& device) {
  cudaGetLastError();  // so that the next call does not report it again
  throw DeviceError(code_of(status),
                    fmt::format("{}: {} [{}]", cudaGetErrorString(status), cudaGetErrorName(status), call), device,
                    hint_for(status));
}

}  // namespace headrace::detail

namespace headrace {

void throw_out_of_memory(const Device& device, std::size_t bytes, MemoryPlace place) {
  cudaGetLastError();  // so that the next call does not report it again
  std::size_t free = 0;
  std::size_t total = 0;
  cudaMemGetInfo(&free, &total);
  const MemoryUse use = device.memory_use();
  throw DeviceError(
      ErrorCode::kOutOfMemory,
      fmt::format("cannot allocate {} bytes of {} memory; this replica holds {} device and {} pinned "
                  "bytes, the GPU has {} free of {}",
                  bytes, place == MemoryPlace::kPinned ? "pinned" : "device", use.device_bytes, use.pinned_bytes,
                  free, total),
      device.info().name, "a smaller batch or fewer batches in flight need less");
}

}  // namespace headrace
