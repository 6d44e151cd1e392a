// Opens the CUDA backend's mathematics when it is first needed. Private to the CUDA backend.
#pragma once

#include <array>
#include <filesystem>
#include <string>
#include <string_view>

#include "headrace/devices/cuda/cuda_math.h"

namespace headrace {

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
