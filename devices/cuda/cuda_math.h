// The CUDA backend's mathematics, in a module that is opened when it is first needed: unlike feeding batches, it
// needs NVIDIA's libraries, a gigabyte of them. Private to the CUDA backend.
#pragma once

#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/backend.h"

namespace headrace {

// The CUDA backend's mathematics, in a separate module: unlike feeding batches, it needs NVIDIA's libraries, a
// gigabyte of them.

class Kernels;

// The module's interface; thread-safe, lives for the whole process.
class CudaMath {
 public:
  virtual ~CudaMath() = default;

  // Creates the kernels of one device, for its streams. Throws DeviceError if a library does not start on it.
  // REQUIRES: the device outlives them.
  virtual std::unique_ptr<Kernels> create_kernels(Device& device) const = 0;
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

// Opens the CUDA backend's mathematics when it is first needed.

struct LoadedMath {
  const CudaMath* math = nullptr;
  std::string missing;  // why there is none and what to do, in words
};

// Opens this file. Never throws.
LoadedMath load_cuda_math(const std::filesystem::path& file);

// Returns the mathematics of the process: $HEADRACE_CUDA_MATH_MODULE, or the file beside this module; opened on
// the first call, which may take a second. Thread-safe.
const LoadedMath& cuda_math();

}  // namespace headrace

namespace headrace::cuda {

// Returns a hint for `reason`, the dynamic linker's, which names the first missing library; empty if that is not
// one of NVIDIA's.
inline std::string library_hint(std::string_view reason) {
  struct Library {
    std::string_view file, package;
  };
  static constexpr std::array<Library, 3> kLibraries{
      {{"libcudnn", "nvidia-cudnn-cu13"}, {"libcublas", "nvidia-cublas"}, {"libnccl", "nvidia-nccl-cu13"}}};
  for (const Library& library : kLibraries) {
    if (reason.find(library.file) == std::string_view::npos) continue;
    return "install it from NVIDIA's packages or with `pip install " + std::string(library.package) +
           "`, and name its folder in LD_LIBRARY_PATH";
  }
  return {};
}

}  // namespace headrace::cuda
