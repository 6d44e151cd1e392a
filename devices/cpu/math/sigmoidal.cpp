#include "headrace/devices/cpu/math/sigmoidal.h"

#include "headrace/devices/cpu/math/element.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/cpu/math/vector_math.h"

namespace headrace::cpu {
namespace {

constexpr std::int64_t kSigmoidalGrain = row_grain(1);

// Near 0 the difference of two numbers near 1 has few digits: there it is the Taylor polynomial, whose remainder
// is below 6e-8 of the result.
HEADRACE_INLINE float fast_tanh(float x) noexcept {
  const float far = 2.0F * sigmoid(2.0F * x) - 1.0F;
  const float s = x * x;
  const float near = x * (1.0F + s * (-1.0F / 3 + s * (2.0F / 15 + s * (-17.0F / 315))));
  return s < 0.04F ? near : far;
}

template <typename T>
HEADRACE_INLINE void sigmoidal_each(Sigmoidal sigmoidal, const T* x, T* y, std::int64_t count) {
  if (sigmoidal == Sigmoidal::kSigmoid) {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = element<T>(sigmoid(value(x[i])));
  } else {
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) y[i] = element<T>(fast_tanh(value(x[i])));
  }
}
HEADRACE_SIMD_MATH void sigmoidal_range(Sigmoidal sigmoidal, const float* x, float* y, std::int64_t count) {
  sigmoidal_each(sigmoidal, x, y, count);
}
HEADRACE_SIMD_MATH void sigmoidal_range(Sigmoidal sigmoidal, const BFloat16* x, BFloat16* y, std::int64_t count) {
  sigmoidal_each(sigmoidal, x, y, count);
}

template <typename T>
HEADRACE_INLINE void sigmoidal_each_backward(Sigmoidal sigmoidal, const T* y, const T* dy, T* dx,
                                             std::int64_t count) {
  const bool sigmoid = sigmoidal == Sigmoidal::kSigmoid;
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    const float result = value(y[i]);
    const float slope = sigmoid ? result * (1.0F - result) : 1.0F - result * result;
    dx[i] = element<T>(value(dy[i]) * slope);
  }
}
HEADRACE_SIMD_MATH void sigmoidal_backward_range(Sigmoidal sigmoidal, const float* y, const float* dy, float* dx,
                                                 std::int64_t count) {
  sigmoidal_each_backward(sigmoidal, y, dy, dx, count);
}
HEADRACE_SIMD_MATH void sigmoidal_backward_range(Sigmoidal sigmoidal, const BFloat16* y, const BFloat16* dy,
                                                 BFloat16* dx, std::int64_t count) {
  sigmoidal_each_backward(sigmoidal, y, dy, dx, count);
}

}  // namespace

template <typename T>
void sigmoidal(Sigmoidal sigmoidal, const T* x, T* y, std::int64_t count) {
  parallel_ranges(count, kSigmoidalGrain, [=](std::int64_t begin, std::int64_t end) {
    sigmoidal_range(sigmoidal, x + begin, y + begin, end - begin);
  });
}

template <typename T>
void sigmoidal_backward(Sigmoidal sigmoidal, const T* y, const T* dy, T* dx, std::int64_t count) {
  parallel_ranges(count, kSigmoidalGrain, [=](std::int64_t begin, std::int64_t end) {
    sigmoidal_backward_range(sigmoidal, y + begin, dy + begin, dx + begin, end - begin);
  });
}

template void sigmoidal(Sigmoidal, const float*, float*, std::int64_t);
template void sigmoidal(Sigmoidal, const BFloat16*, BFloat16*, std::int64_t);
template void sigmoidal_backward(Sigmoidal, const float*, const float*, float*, std::int64_t);
template void sigmoidal_backward(Sigmoidal, const BFloat16*, const BFloat16*, BFloat16*, std::int64_t);

}  // namespace headrace::cpu
