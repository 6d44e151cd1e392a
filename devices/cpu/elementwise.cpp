#include "headrace/devices/cpu/elementwise.h"

#include <cstring>

#include "headrace/devices/cpu/parallel.h"
#include "headrace/devices/cpu/vector_math.h"

namespace headrace::cpu {
namespace {

constexpr std::int64_t kGrain = row_grain(1);

HEADRACE_SIMD void relu_range(const float* x, float* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = headrace::relu(x[i]);
}
HEADRACE_SIMD void gelu_range(const float* x, float* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = headrace::gelu(x[i]);
}
HEADRACE_SIMD void silu_range(const float* x, float* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = headrace::silu(x[i]);
}

HEADRACE_SIMD void relu_backward_range(const float* x, const float* dy, float* dx, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) dx[i] = x[i] > 0 ? dy[i] : 0.0F;
}
HEADRACE_SIMD void gelu_backward_range(const float* x, const float* dy, float* dx, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * gelu_slope(x[i]);
}
HEADRACE_SIMD void silu_backward_range(const float* x, const float* dy, float* dx, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) dx[i] = dy[i] * silu_slope(x[i]);
}

HEADRACE_SIMD void add_range(const float* a, const float* b, float* sum, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

HEADRACE_SIMD void to_bf16_range(const float* x, std::uint16_t* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = headrace::to_bf16(x[i]);
}
HEADRACE_SIMD void round_to_bf16_range(const float* x, float* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = headrace::round_to_bf16(x[i]);
}
HEADRACE_SIMD void from_bf16_range(const std::uint16_t* x, float* y, std::int64_t count) {
#pragma GCC ivdep
  for (std::int64_t i = 0; i < count; ++i) y[i] = widened({x[i]});
}

// Few channels (an image's 3) repeat within one vector: the coefficients are laid out once so that a block of
// kBlock pixels is one straight loop.
constexpr std::int64_t kBlock = 16;
constexpr std::int64_t kNarrow = 8;

template <typename T>
HEADRACE_INLINE void scale_shift_narrow(const T* x, const float* scale, const float* shift, float* y,
                                        std::int64_t rows, std::int64_t channels) {
  float scales[kBlock * kNarrow];
  float shifts[kBlock * kNarrow];
  const std::int64_t length = kBlock * channels;
  for (std::int64_t i = 0; i < length; ++i) {
    scales[i] = scale[i % channels];
    shifts[i] = shift[i % channels];
  }
  const std::int64_t count = rows * channels;
  std::int64_t i = 0;
  for (; i + length <= count; i += length) {
    for (std::int64_t k = 0; k < length; ++k) y[i + k] = static_cast<float>(x[i + k]) * scales[k] + shifts[k];
  }
  for (std::int64_t k = 0; i + k < count; ++k) y[i + k] = static_cast<float>(x[i + k]) * scales[k] + shifts[k];
}

template <typename T>
HEADRACE_INLINE void scale_shift_rows(const T* x, const float* scale, const float* shift, float* y,
                                      std::int64_t rows, std::int64_t channels) {
  if (channels <= kNarrow) return scale_shift_narrow(x, scale, shift, y, rows, channels);
  for (std::int64_t row = 0; row < rows; ++row, x += channels, y += channels) {
    for (std::int64_t c = 0; c < channels; ++c) y[c] = static_cast<float>(x[c]) * scale[c] + shift[c];
  }
}

HEADRACE_SIMD void scale_shift_range(const float* x, const float* scale, const float* shift, float* y,
                                     std::int64_t rows, std::int64_t channels) {
  scale_shift_rows(x, scale, shift, y, rows, channels);
}
HEADRACE_SIMD void scale_shift_range(const std::uint8_t* x, const float* scale, const float* shift, float* y,
                                     std::int64_t rows, std::int64_t channels) {
  scale_shift_rows(x, scale, shift, y, rows, channels);
}

template <typename T>
void scale_shift_any(const T* x, const float* scale, const float* shift, float* y, std::int64_t rows,
                     std::int64_t channels) {
  parallel_ranges(rows, row_grain(channels), [=](std::int64_t begin, std::int64_t end) {
    scale_shift_range(x + begin * channels, scale, shift, y + begin * channels, end - begin, channels);
  });
}

}  // namespace

void activate(Activation activation, const float* x, float* y, std::int64_t count) {
  parallel_ranges(count, kGrain, [=](std::int64_t begin, std::int64_t end) {
    const std::int64_t length = end - begin;
    switch (activation) {
      case Activation::kNone:
        if (y != x) std::memcpy(y + begin, x + begin, static_cast<std::size_t>(length) * sizeof(float));
        return;
      case Activation::kRelu: return relu_range(x + begin, y + begin, length);
      case Activation::kGelu: return gelu_range(x + begin, y + begin, length);
      case Activation::kSilu: return silu_range(x + begin, y + begin, length);
    }
  });
}

void activate_backward(Activation activation, const float* x, const float* dy, float* dx, std::int64_t count) {
  parallel_ranges(count, kGrain, [=](std::int64_t begin, std::int64_t end) {
    const std::int64_t length = end - begin;
    switch (activation) {
      case Activation::kNone:
        if (dx != dy) std::memcpy(dx + begin, dy + begin, static_cast<std::size_t>(length) * sizeof(float));
        return;
      case Activation::kRelu: return relu_backward_range(x + begin, dy + begin, dx + begin, length);
      case Activation::kGelu: return gelu_backward_range(x + begin, dy + begin, dx + begin, length);
      case Activation::kSilu: return silu_backward_range(x + begin, dy + begin, dx + begin, length);
    }
  });
}

void add(const float* a, const float* b, float* sum, std::int64_t count) {
  parallel_ranges(count, kGrain, [=](std::int64_t begin, std::int64_t end) {
    add_range(a + begin, b + begin, sum + begin, end - begin);
  });
}

void scale_shift(const float* x, const float* scale, const float* shift, float* y, std::int64_t rows,
                 std::int64_t channels) {
  scale_shift_any(x, scale, shift, y, rows, channels);
}

void scale_shift(const std::uint8_t* x, const float* scale, const float* shift, float* y, std::int64_t rows,
                 std::int64_t channels) {
  scale_shift_any(x, scale, shift, y, rows, channels);
}

void to_bf16(const float* x, std::uint16_t* y, std::int64_t count) {
  parallel_ranges(count, kGrain,
                  [=](std::int64_t begin, std::int64_t end) { to_bf16_range(x + begin, y + begin, end - begin); });
}

void round_to_bf16(const float* x, float* y, std::int64_t count) {
  parallel_ranges(count, kGrain, [=](std::int64_t begin, std::int64_t end) {
    round_to_bf16_range(x + begin, y + begin, end - begin);
  });
}

void from_bf16(const std::uint16_t* x, float* y, std::int64_t count) {
  parallel_ranges(count, kGrain, [=](std::int64_t begin, std::int64_t end) {
    from_bf16_range(x + begin, y + begin, end - begin);
  });
}

}  // namespace headrace::cpu
