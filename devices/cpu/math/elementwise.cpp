#include "headrace/devices/cpu/math/elementwise.h"

#include <algorithm>

#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/cpu/math/vector_math.h"

namespace headrace::cpu {
namespace {

constexpr std::int64_t kElementGrain = row_grain(1);

template <Activation kActivation, typename In, typename Out>
HEADRACE_INLINE void activate_each(const In* x, Out* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = element<Out>(activated<kActivation>(value(x[i])));
}

template <typename In, typename Out>
HEADRACE_INLINE void activate_as(Activation activation, const In* x, Out* y, std::int64_t count) {
  switch (activation) {
    case Activation::kNone: return activate_each<Activation::kNone>(x, y, count);
    case Activation::kRelu: return activate_each<Activation::kRelu>(x, y, count);
    case Activation::kGelu: return activate_each<Activation::kGelu>(x, y, count);
    case Activation::kSilu: return activate_each<Activation::kSilu>(x, y, count);
    case Activation::kSigmoid: return activate_each<Activation::kSigmoid>(x, y, count);
    case Activation::kTanh: return activate_each<Activation::kTanh>(x, y, count);
    case Activation::kLeakyRelu: return activate_each<Activation::kLeakyRelu>(x, y, count);
    case Activation::kElu: return activate_each<Activation::kElu>(x, y, count);
    case Activation::kSoftplus: return activate_each<Activation::kSoftplus>(x, y, count);
    case Activation::kSoftmax: break;
  }
}

HEADRACE_SIMD_MATH void activate_range(Activation activation, const float* x, float* y, std::int64_t count) {
  activate_as(activation, x, y, count);
}
HEADRACE_SIMD_MATH void activate_range(Activation activation, const BFloat16* x, BFloat16* y, std::int64_t count) {
  activate_as(activation, x, y, count);
}
HEADRACE_SIMD_MATH void activate_range(Activation activation, const float* x, BFloat16* y, std::int64_t count) {
  activate_as(activation, x, y, count);
}

template <Activation kActivation, typename T>
HEADRACE_INLINE void activate_each_backward(const T* x, const T* dy, T* dx, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) {
    dx[i] = element<T>(activation_gradient<kActivation>(value(x[i]), value(dy[i])));
  }
}

template <typename T>
HEADRACE_INLINE void activate_backward_as(Activation activation, const T* x, const T* dy, T* dx,
                                          std::int64_t count) {
  switch (activation) {
    case Activation::kNone: return activate_each_backward<Activation::kNone>(x, dy, dx, count);
    case Activation::kRelu: return activate_each_backward<Activation::kRelu>(x, dy, dx, count);
    case Activation::kGelu: return activate_each_backward<Activation::kGelu>(x, dy, dx, count);
    case Activation::kSilu: return activate_each_backward<Activation::kSilu>(x, dy, dx, count);
    case Activation::kSigmoid: return activate_each_backward<Activation::kSigmoid>(x, dy, dx, count);
    case Activation::kTanh: return activate_each_backward<Activation::kTanh>(x, dy, dx, count);
    case Activation::kLeakyRelu: return activate_each_backward<Activation::kLeakyRelu>(x, dy, dx, count);
    case Activation::kElu: return activate_each_backward<Activation::kElu>(x, dy, dx, count);
    case Activation::kSoftplus: return activate_each_backward<Activation::kSoftplus>(x, dy, dx, count);
    case Activation::kSoftmax: break;
  }
}

HEADRACE_SIMD_MATH void activate_backward_range(Activation activation, const float* x, const float* dy, float* dx,
                                                std::int64_t count) {
  activate_backward_as(activation, x, dy, dx, count);
}
HEADRACE_SIMD_MATH void activate_backward_range(Activation activation, const BFloat16* x, const BFloat16* dy,
                                                BFloat16* dx, std::int64_t count) {
  activate_backward_as(activation, x, dy, dx, count);
}

template <typename T>
HEADRACE_INLINE void add_each(const T* a, const T* b, T* sum, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) sum[i] = element<T>(value(a[i]) + value(b[i]));
}
HEADRACE_SIMD_MATH void add_range(const float* a, const float* b, float* sum, std::int64_t count) {
  add_each(a, b, sum, count);
}
HEADRACE_SIMD_MATH void add_range(const BFloat16* a, const BFloat16* b, BFloat16* sum, std::int64_t count) {
  add_each(a, b, sum, count);
}

template <typename T>
HEADRACE_INLINE void sum_each(const T* y, const float* bias, float* sums, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) sums[i] = value(y[i]) + bias[i];
}
HEADRACE_SIMD_MATH void sum_range(const float* y, const float* bias, float* sums, std::int64_t count) {
  sum_each(y, bias, sums, count);
}
HEADRACE_SIMD_MATH void sum_range(const BFloat16* y, const float* bias, float* sums, std::int64_t count) {
  sum_each(y, bias, sums, count);
}

HEADRACE_SIMD_MATH void round_to_bf16_range(const float* x, float* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = headrace::round_to_bf16(x[i]);
}
HEADRACE_SIMD_MATH void from_bf16_range(const BFloat16* x, float* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = widened(x[i]);
}

template <typename In, typename Out>
HEADRACE_INLINE void scale_each(const In* x, float factor, Out* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = element<Out>(value(x[i]) * factor);
}

#define HEADRACE_SCALE(In, Out)                                                                \
  HEADRACE_SIMD_MATH void scale_range(const In* x, float factor, Out* y, std::int64_t count) { \
    scale_each(x, factor, y, count);                                                           \
  }
HEADRACE_SCALE(std::uint8_t, float)
HEADRACE_SCALE(std::uint8_t, BFloat16)
HEADRACE_SCALE(std::int64_t, float)
HEADRACE_SCALE(std::int64_t, BFloat16)
HEADRACE_SCALE(float, float)
HEADRACE_SCALE(float, BFloat16)
HEADRACE_SCALE(BFloat16, float)
HEADRACE_SCALE(BFloat16, BFloat16)
#undef HEADRACE_SCALE

HEADRACE_SIMD_MATH void clamp_range(float* x, float limit, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float low = x[i] < -limit ? -limit : x[i];
    x[i] = low > limit ? limit : low;
  }
}

}  // namespace

template <typename In, typename Out>
void activate(Activation activation, const In* x, Out* y, std::int64_t count) {
  if (activation == Activation::kNone && static_cast<const void*>(x) == y) return;
  parallel_ranges(count, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
    activate_range(activation, x + begin, y + begin, end - begin);
  });
}
template void activate(Activation, const float*, float*, std::int64_t);
template void activate(Activation, const BFloat16*, BFloat16*, std::int64_t);
template void activate(Activation, const float*, BFloat16*, std::int64_t);

template <typename T>
void activate_backward(Activation activation, const T* x, const T* dy, T* dx, std::int64_t count) {
  if (activation == Activation::kNone && dx == dy) return;
  parallel_ranges(count, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
    activate_backward_range(activation, x + begin, dy + begin, dx + begin, end - begin);
  });
}
template void activate_backward(Activation, const float*, const float*, float*, std::int64_t);
template void activate_backward(Activation, const BFloat16*, const BFloat16*, BFloat16*, std::int64_t);

template <typename T>
void add(const T* a, const T* b, T* sum, std::int64_t count) {
  parallel_ranges(count, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
    add_range(a + begin, b + begin, sum + begin, end - begin);
  });
}
template void add(const float*, const float*, float*, std::int64_t);
template void add(const BFloat16*, const BFloat16*, BFloat16*, std::int64_t);

template <typename T>
void add_bias(Activation activation, const float* bias, T* y, std::int64_t rows, std::int64_t columns) {
  if (bias == nullptr) return activate(activation, y, y, rows * columns);
  constexpr std::int64_t kBlock = 256;
  const std::int64_t copies = std::max<std::int64_t>(1, kBlock / columns), period = copies * columns;
  auto* repeated = reinterpret_cast<float*>(
      Workspace::of_this_thread().reserve(static_cast<std::size_t>(period) * sizeof(float)));
  for (std::int64_t copy = 0; copy < copies; ++copy) std::copy_n(bias, columns, repeated + copy * columns);
  parallel_ranges(rows * columns, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
    float sums[kBlock];
    for (std::int64_t at = begin, count = 0; at < end; at += count) {
      const std::int64_t place = at % period;
      count = std::min({kBlock, period - place, end - at});
      sum_range(y + at, repeated + place, sums, count);
      activate(activation, sums, y + at, count);
    }
  });
}
template void add_bias(Activation, const float*, float*, std::int64_t, std::int64_t);
template void add_bias(Activation, const float*, BFloat16*, std::int64_t, std::int64_t);

template <typename In, typename Out>
void scale(const In* x, float factor, Out* y, std::int64_t count) {
  parallel_ranges(count, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
    scale_range(x + begin, factor, y + begin, end - begin);
  });
}
template void scale(const std::uint8_t*, float, float*, std::int64_t);
template void scale(const std::uint8_t*, float, BFloat16*, std::int64_t);
template void scale(const std::int64_t*, float, float*, std::int64_t);
template void scale(const std::int64_t*, float, BFloat16*, std::int64_t);
template void scale(const float*, float, float*, std::int64_t);
template void scale(const float*, float, BFloat16*, std::int64_t);
template void scale(const BFloat16*, float, float*, std::int64_t);
template void scale(const BFloat16*, float, BFloat16*, std::int64_t);

void clamp(float* x, float limit, std::int64_t count) {
  parallel_ranges(count, kElementGrain,
                  [=](std::int64_t begin, std::int64_t end) { clamp_range(x + begin, limit, end - begin); });
}

void to_bf16(const float* x, BFloat16* y, std::int64_t count) { activate(Activation::kNone, x, y, count); }

void round_to_bf16(const float* x, float* y, std::int64_t count) {
  parallel_ranges(count, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
    round_to_bf16_range(x + begin, y + begin, end - begin);
  });
}

void from_bf16(const BFloat16* x, float* y, std::int64_t count) {
  parallel_ranges(count, kElementGrain, [=](std::int64_t begin, std::int64_t end) {
    from_bf16_range(x + begin, y + begin, end - begin);
  });
}

}  // namespace headrace::cpu
