#include "headrace/devices/cpu/curves.h"

#include "headrace/devices/cpu/element.h"
#include "headrace/devices/cpu/parallel.h"
#include "headrace/devices/cpu/vector_math.h"

namespace headrace::cpu {
namespace {

constexpr std::int64_t kCurveGrain = row_grain(1);

// Near 0 the difference of two numbers near 1 has few digits: there it is the Taylor polynomial, whose remainder
// is below 6e-8 of the result.
HEADRACE_INLINE float fast_tanh(float x) noexcept {
  const float far = 2.0F * sigmoid(2.0F * x) - 1.0F;
  const float s = x * x;
  const float near = x * (1.0F + s * (-1.0F / 3 + s * (2.0F / 15 + s * (-17.0F / 315))));
  return s < 0.04F ? near : far;
}

template <typename T>
HEADRACE_INLINE void curve_each(Curve curve, const T* x, T* y, std::int64_t count) {
  if (curve == Curve::kSigmoid) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = element<T>(sigmoid(value(x[i])));
  } else {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = element<T>(fast_tanh(value(x[i])));
  }
}
HEADRACE_SIMD_MATH void curve_range(Curve curve, const float* x, float* y, std::int64_t count) {
  curve_each(curve, x, y, count);
}
HEADRACE_SIMD_MATH void curve_range(Curve curve, const BFloat16* x, BFloat16* y, std::int64_t count) {
  curve_each(curve, x, y, count);
}

template <typename T>
HEADRACE_INLINE void curve_each_backward(Curve curve, const T* y, const T* dy, T* dx, std::int64_t count) {
  const bool sigmoid = curve == Curve::kSigmoid;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const float result = value(y[i]);
    const float slope = sigmoid ? result * (1.0F - result) : 1.0F - result * result;
    dx[i] = element<T>(value(dy[i]) * slope);
  }
}
HEADRACE_SIMD_MATH void curve_backward_range(Curve curve, const float* y, const float* dy, float* dx,
                                             std::int64_t count) {
  curve_each_backward(curve, y, dy, dx, count);
}
HEADRACE_SIMD_MATH void curve_backward_range(Curve curve, const BFloat16* y, const BFloat16* dy, BFloat16* dx,
                                             std::int64_t count) {
  curve_each_backward(curve, y, dy, dx, count);
}

}  // namespace

template <typename T>
void curve(Curve curve, const T* x, T* y, std::int64_t count) {
  parallel_ranges(count, kCurveGrain, [=](std::int64_t begin, std::int64_t end) {
    curve_range(curve, x + begin, y + begin, end - begin);
  });
}

template <typename T>
void curve_backward(Curve curve, const T* y, const T* dy, T* dx, std::int64_t count) {
  parallel_ranges(count, kCurveGrain, [=](std::int64_t begin, std::int64_t end) {
    curve_backward_range(curve, y + begin, dy + begin, dx + begin, end - begin);
  });
}

template void curve(Curve, const float*, float*, std::int64_t);
template void curve(Curve, const BFloat16*, BFloat16*, std::int64_t);
template void curve_backward(Curve, const float*, const float*, float*, std::int64_t);
template void curve_backward(Curve, const BFloat16*, const BFloat16*, BFloat16*, std::int64_t);

}  // namespace headrace::cpu
