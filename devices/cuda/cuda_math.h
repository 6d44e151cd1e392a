// The CUDA backend's mathematics, in a module of its own: it needs NVIDIA's libraries, a gigabyte of them, which
// feeding batches does not. Private to the CUDA backend.
#pragma once

#include <memory>
#include <vector>

#include "headrace/devices/backend.h"

namespace headrace {

class Kernels;

// What the module offers; thread-safe, lives for the whole process.
class CudaMath {
 public:
  virtual ~CudaMath() = default;

  // The kernels of one device, for its streams. Throws DeviceError when a library does not start on it.
  virtual std::unique_ptr<Kernels> create_kernels(const DeviceInfo& device) const = 0;
  // For a group with one replica a GPU. Throws DeviceError.
  virtual std::unique_ptr<Collective> create_nccl_collective(DeviceGroup& devices) const = 0;
  // cuDNN, cuBLASLt and NCCL with the versions that were found, and the plans that are kept.
  virtual std::vector<Finding> diagnose() const = 0;
};

// What the module exports, as `extern "C"`, by this name. Null when it was built for another ABI version.
using CudaMathEntry = const CudaMath* (*)(int abi_version);
inline constexpr const char* kCudaMathEntryName = "headrace_cuda_math";
inline constexpr const char* kCudaMathFile = "libheadrace_cuda_math.so";

}  // namespace headrace
