// Which of a library's plans are admitted, and how one is chosen. Private to the CUDA backend.
#pragma once

#include <optional>

namespace headrace::cuda {

enum class Determinism {
  kDefault,  // the library's first plan of those that repeat their bits
  kTuned,    // the fastest of those, timed once a machine: the choice is kept (PlanStore), so that bits repeat
  kFastest,  // the fastest of all: cuDNN may sum with atomics. The choice is kept, too, but bits need not repeat
};

// What HEADRACE_CUDA_MATH says: "default", "tuned" or "fastest"; nothing where it is unset or empty. Throws
// ConfigError for another word.
std::optional<Determinism> named_determinism();

}  // namespace headrace::cuda
