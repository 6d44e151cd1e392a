// The CUDA backend's mathematics, in a separate module: unlike feeding batches, it needs NVIDIA's libraries, a
// gigabyte of them. Private to the CUDA backend.
#pragma once

#include <memory>
#include <vector>

#include "headrace/devices/backend.h"

namespace headrace {

class Kernels;

// The module's interface; thread-safe, lives for the whole process.
class CudaMath {
 public:
  virtual ~CudaMath() = default;

  // Creates the kernels of one device, for its streams. Throws DeviceError if a library does not start on it.
  virtual std::unique_ptr<Kernels> create_kernels(const DeviceInfo& device) const = 0;
  // Creates the collective of a group with one replica per GPU, together with those of all other workers unless
  // `workers` is null. Throws ConfigError if workers do not fit together, and DeviceError.
  virtual std::unique_ptr<Collective> create_nccl_collective(DeviceGroup& devices,
                                                             std::shared_ptr<Workers> workers) const = 0;
  // Returns the versions found of cuDNN, cuBLASLt and NCCL, and the kept plans.
  virtual std::vector<Finding> diagnose() const = 0;
};

// The `extern "C"` function that the module exports by this name. Returns null if built for another ABI version.
using CudaMathEntry = const CudaMath* (*)(int abi_version);
inline constexpr const char* kCudaMathEntryName = "headrace_cuda_math";
inline constexpr const char* kCudaMathFile = "libheadrace_cuda_math.so";

}  // namespace headrace
