#include "headrace/devices/cuda/math/determinism.h"

#include <cstdlib>
#include <string>

#include "headrace/devices/base/error.h"

namespace headrace::cuda {

Determinism chosen_determinism() {
  const char* variable = std::getenv("HEADRACE_CUDA_MATH");
  const std::string word = variable == nullptr ? "" : variable;
  if (word.empty() || word == "repeatable") return Determinism::kRepeatable;
  if (word == "tuned") return Determinism::kTuned;
  if (word == "fastest") return Determinism::kFastest;
  throw ConfigError("HEADRACE_CUDA_MATH is '" + word + "'", "it must be repeatable, tuned or fastest");
}

}  // namespace headrace::cuda
