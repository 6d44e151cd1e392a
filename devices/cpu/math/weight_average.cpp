#include "headrace/devices/cpu/math/weight_average.h"

#include "headrace/devices/base/simd.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/parallel.h"

namespace headrace::cpu {
namespace {

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

}  // namespace

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

}  // namespace headrace::cpu
