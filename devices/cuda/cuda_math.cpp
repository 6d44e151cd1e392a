#include <cstdlib>

#include "headrace/devices/base/shared_module.h"
#include "headrace/devices/common/backend_module.h"
#include "headrace/devices/cuda/cuda_math.h"

namespace headrace {
namespace {

std::filesystem::path math_file() {
  const char* named = std::getenv("HEADRACE_CUDA_MATH_MODULE");
  if (named != nullptr && *named != '\0') return named;
  return folder_of_code(reinterpret_cast<const void*>(&math_file)) / kCudaMathFile;
}

LoadedMath missing(const std::string& why) { return {.math = nullptr, .missing = why}; }

}  // namespace

LoadedMath load_cuda_math(const std::filesystem::path& file) {
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored)) {
    return missing("there is no " + file.string() +
                   ": build where CMake finds cuDNN, cuBLASLt and NCCL, or name " +
                   "the file in HEADRACE_CUDA_MATH_MODULE");
  }
  const SharedModule module = open_shared_module(file, kCudaMathEntryName);
  if (module.entry == nullptr) {
    const std::string hint = cuda::library_hint(module.missing);
    return missing(file.string() + ": " + module.missing + (hint.empty() ? "" : "; " + hint));
  }
  const CudaMath* math = reinterpret_cast<CudaMathEntry>(module.entry)(kBackendAbiVersion);
  if (math == nullptr) return missing(file.string() + " is from another build of Headrace: install both from one");
  return {.math = math, .missing = {}};
}

const LoadedMath& cuda_math() {
  static const LoadedMath loaded = load_cuda_math(math_file());
  return loaded;
}

}  // namespace headrace
