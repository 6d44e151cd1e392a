// Whether a step's bits may differ from run to run where that is faster. Private to the CUDA backend.
#pragma once

namespace headrace::cuda {

enum class Determinism {
  kRepeatable,  // the same bits for the same inputs on the same kind of GPU, as Kernels promises
  kTuned,       // the same bits within a process: of the kernels that repeat them, those that were fastest when it
                // began
  kFastest,     // the fastest of all: cuDNN may sum with atomics
};

// From HEADRACE_CUDA_MATH, read once: "repeatable" (also when unset), "tuned" or "fastest". Throws ConfigError for
// another word.
Determinism chosen_determinism();

}  // namespace headrace::cuda
