// Opens the CUDA backend's mathematics where it is first needed. Private to the CUDA backend.
#pragma once

#include <filesystem>
#include <string>

#include "headrace/devices/cuda/cuda_math.h"

namespace headrace {

struct LoadedMath {
  const CudaMath* math = nullptr;
  std::string missing;  // why there is none and what to do, in words
};

// Opens this file. Never throws.
LoadedMath load_cuda_math(const std::filesystem::path& file);

// That of the process: $HEADRACE_CUDA_MATH_MODULE, or the file beside this module; opened at the first call, which
// may take a second. Thread-safe.
const LoadedMath& cuda_math();

}  // namespace headrace
