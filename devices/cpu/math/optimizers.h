// One optimizer step over an arena of parameters. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/kernels.h"

namespace headrace::cpu {

struct ParameterArena {
  float* parameters = nullptr;
  const float* gradients = nullptr;
  BFloat16* rounded = nullptr;  // the parameters' copy, if any
  std::int64_t count = 0;
};

// Updates each parameter independently, in one pass over memory.
void adam(const ParameterArena& arena, float* first_moment, float* second_moment, const AdamOptions& options,
          const StepScalars& scalars);
// `velocity` may be null if the momentum is 0.
void sgd(const ParameterArena& arena, float* velocity, const SgdOptions& options, const StepScalars& scalars);

// Implement Kernels::average() and, for a share other than 0, Kernels::look_ahead(); `rounded` may be null.
void average(const float* weights, float decay, float* average, std::int64_t count);
void look_ahead(float* parameters, BFloat16* rounded, float share, float* slow, std::int64_t count);

}  // namespace headrace::cpu
