#include "headrace/devices/cuda/math/determinism.h"

#include <cstdlib>
#include <string>

#include "headrace/devices/base/error.h"

namespace headrace::cuda {

std::optional<Determinism> named_determinism() {
  const char* variable = std::getenv("HEADRACE_CUDA_MATH");
  const std::string word = variable == nullptr ? "" : variable;
  if (word.empty()) return std::nullopt;
  if (word == "default") return Determinism::kDefault;
  if (word == "tuned") return Determinism::kTuned;
  if (word == "fastest") return Determinism::kFastest;
  throw ConfigError("HEADRACE_CUDA_MATH is '" + word + "'", "it must be default, tuned or fastest");
}

}  // namespace headrace::cuda
