// The functions of the CPU's table for optimizers, and for gradients and weights around an update.
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "headrace/devices/base/bf16.h"
#include "headrace/devices/base/simd.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/onednn_products.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/kernels.h"

// No argument here is negative, so errno is never written: told so, the compiler makes vector code of the loop.
extern "C" float sqrtf(float) noexcept __attribute__((const));

namespace headrace::cpu {
namespace {

struct ParameterArena {
  float* parameters = nullptr;
  const float* gradients = nullptr;
  BFloat16* rounded = nullptr;  // the parameters' copy, if any
  std::int64_t count = 0;
};

constexpr std::int64_t kUpdateGrain = row_grain(1);

HEADRACE_SIMD_MATH void adam_range(const ParameterArena& arena, float* __restrict first, float* __restrict second,
                                   const AdamOptions& options, const StepScalars& scalars) {
  float* __restrict parameters = arena.parameters;
  const float* __restrict gradients = arena.gradients;
  const float beta1 = options.beta1, beta2 = options.beta2, epsilon = options.epsilon;
  const float learning_rate = scalars.learning_rates[options.group];
  const float keep = 1.0F - learning_rate * options.weight_decay;
  const float rate = learning_rate * scalars.corrections[options.group][0];
  const float correction = scalars.corrections[options.group][1];
  for (std::int64_t i = 0; i < arena.count; ++i) {
    const float gradient = gradients[i];
    const float m = beta1 * first[i] + (1.0F - beta1) * gradient;
    const float v = beta2 * second[i] + (1.0F - beta2) * (gradient * gradient);
    first[i] = m;
    second[i] = v;
    parameters[i] = keep * parameters[i] - rate * m / (sqrtf(v * correction) + epsilon);
  }
}

HEADRACE_SIMD_MATH void sgd_momentum_range(const ParameterArena& arena, float* __restrict velocity,
                                           const SgdOptions& options, const StepScalars& scalars) {
  float* __restrict parameters = arena.parameters;
  const float* __restrict gradients = arena.gradients;
  const float momentum = options.momentum, decay = options.weight_decay;
  const float rate = scalars.learning_rates[options.group];
  // Nesterov looks one step of momentum ahead: gradient + momentum * v; plain momentum moves by v.
  const float gradient_share = options.nesterov ? 1.0F : 0.0F;
  const float velocity_share = options.nesterov ? momentum : 1.0F;
  for (std::int64_t i = 0; i < arena.count; ++i) {
    const float gradient = gradients[i] + decay * parameters[i];
    const float v = momentum * velocity[i] + gradient;
    velocity[i] = v;
    parameters[i] -= rate * (gradient_share * gradient + velocity_share * v);
  }
}

HEADRACE_SIMD_MATH void descend_range(const ParameterArena& arena, const SgdOptions& options,
                                      const StepScalars& scalars) {
  float* __restrict parameters = arena.parameters;
  const float* __restrict gradients = arena.gradients;
  const float decay = options.weight_decay, rate = scalars.learning_rates[options.group];
  for (std::int64_t i = 0; i < arena.count; ++i) {
    parameters[i] -= rate * (gradients[i] + decay * parameters[i]);
  }
}

void write_copy(const ParameterArena& arena) {
  if (arena.rounded != nullptr) to_bf16(arena.parameters, arena.rounded, arena.count);
}

ParameterArena part(const ParameterArena& arena, std::int64_t begin, std::int64_t end) {
  return {.parameters = arena.parameters + begin, .gradients = arena.gradients + begin, .count = end - begin};
}

constexpr std::int64_t kAverageGrain = row_grain(1);

HEADRACE_SIMD_MATH void average_range(const float* __restrict weights, float decay, float* __restrict average,
                                      std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) average[i] = weights[i] + decay * (average[i] - weights[i]);
}

HEADRACE_SIMD_MATH void look_ahead_range(float* __restrict parameters, float share, float* __restrict slow,
                                         std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float moved = slow[i] + share * (parameters[i] - slow[i]);
    slow[i] = moved;
    parameters[i] = moved;
  }
}

// Updates each parameter independently, in one pass over memory.
void adam(const ParameterArena& arena, float* first_moment, float* second_moment, const AdamOptions& options,
          const StepScalars& scalars) {
  parallel_ranges(arena.count, kUpdateGrain, [&](std::int64_t begin, std::int64_t end) {
    adam_range(part(arena, begin, end), first_moment + begin, second_moment + begin, options, scalars);
  });
  write_copy(arena);
}

// `velocity` may be null if the momentum is 0.
void sgd(const ParameterArena& arena, float* velocity, const SgdOptions& options, const StepScalars& scalars) {
  parallel_ranges(arena.count, kUpdateGrain, [&](std::int64_t begin, std::int64_t end) {
    if (options.momentum == 0) {
      descend_range(part(arena, begin, end), options, scalars);
    } else {
      sgd_momentum_range(part(arena, begin, end), velocity + begin, options, scalars);
    }
  });
  write_copy(arena);
}

// Implement Kernels::average() and, for a share other than 0, Kernels::look_ahead(); `rounded` may be null.
void average(const float* weights, float decay, float* average, std::int64_t count) {
  parallel_ranges(count, kAverageGrain, [=](std::int64_t begin, std::int64_t end) {
    average_range(weights + begin, decay, average + begin, end - begin);
  });
}

void look_ahead(float* parameters, BFloat16* rounded, float share, float* slow, std::int64_t count) {
  parallel_ranges(count, kAverageGrain, [=](std::int64_t begin, std::int64_t end) {
    look_ahead_range(parameters + begin, share, slow + begin, end - begin);
  });
  if (rounded != nullptr) to_bf16(parameters, rounded, count);
}

ParameterArena arena_of(const Parameters& parameters, const TensorView& gradients, std::int64_t begin,
                        std::int64_t end) {
  return {.parameters = f32(parameters.values) + begin,
          .gradients = f32(gradients) + begin,
          .rounded = parameters.rounded.defined() ? parameters.rounded.as<BFloat16>() + begin : nullptr,
          .count = end - begin};
}

}  // namespace

void CpuKernels::run(Stream& stream, const kernel::Adam& of) {
  submit(stream, [=, owned = std::vector(of.ranges.begin(), of.ranges.end())] {
    if (of.scalars->failed()) return;
    for (const auto& [begin, end, options] : owned) {
      cpu::adam(arena_of(of.parameters, of.gradients, begin, end), f32(of.first_moment) + begin,
                f32(of.second_moment) + begin, options, *of.scalars);
    }
  });
}

void CpuKernels::run(Stream& stream, const kernel::Sgd& of) {
  submit(stream, [=, owned = std::vector(of.ranges.begin(), of.ranges.end())] {
    if (of.scalars->failed()) return;
    for (const auto& [begin, end, options] : owned) {
      cpu::sgd(arena_of(of.parameters, of.gradients, begin, end),
               options.momentum == 0 ? nullptr : f32(of.velocity) + begin, options, *of.scalars);
    }
  });
}

void CpuKernels::run(Stream& stream, const kernel::Muon& of) {
  for (const MuonMatrix& matrix : of.matrices)
    submit(stream, muon_update(onednn_, matrix, of.options, of.scalars));
}

void CpuKernels::run(Stream& stream, const kernel::AddSquares& of) {
  submit(stream, [=] { of.norm->squares += cpu::sum_of_squares(f32(of.x), of.x.elements()); });
}

void CpuKernels::run(Stream& stream, const kernel::ClipFactor& of) {
  submit(stream, [=] { cpu::clip_factor(of.max_norm, *of.norm); });
}

void CpuKernels::run(Stream& stream, const kernel::Clamp& of) {
  submit(stream, [=] { cpu::clamp(f32(of.x), of.limit, of.x.elements()); });
}

void CpuKernels::run(Stream& stream, const kernel::Average& of) {
  submit(stream, [=] {
    if (of.scalars->failed()) return;
    cpu::average(f32(of.weights), of.scalars->average_decay, f32(of.average), of.weights.elements());
  });
}

void CpuKernels::run(Stream& stream, const kernel::LookAhead& of) {
  submit(stream, [=] {
    if (of.scalars->slow_share == 0 || of.scalars->failed()) return;
    cpu::look_ahead(f32(of.parameters.values), of.parameters.rounded.as<BFloat16>(), of.scalars->slow_share,
                    f32(of.slow), of.slow.elements());
  });
}

}  // namespace headrace::cpu
