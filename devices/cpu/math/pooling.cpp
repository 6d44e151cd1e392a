#include "headrace/devices/cpu/math/pooling.h"

#include <cstring>

#include "headrace/devices/base/simd.h"
#include "headrace/devices/cpu/math/element.h"
#include "headrace/devices/cpu/math/parallel.h"
#include "headrace/devices/cpu/math/sums.h"
#include "headrace/devices/cpu/math/workspace.h"

namespace headrace::cpu {
namespace {

constexpr std::int64_t kPooledChannels = 64;  // channels at a time

// Finds the winners of one window for `width` <= kPooledChannels channels from `corner` on.
template <typename T>
HEADRACE_INLINE void pool_strip(const T* corner, T* y, std::uint8_t* argmax, std::int64_t width,
                                std::int64_t row_step, std::int64_t channels, std::int64_t window) {
  float best[kPooledChannels];
  std::int32_t winner[kPooledChannels];
  for (std::int64_t c = 0; c < width; ++c) {
    best[c] = value(corner[c]);
    winner[c] = 0;
  }
  for (std::int64_t position = 1; position < window * window; ++position) {
    const T* from = corner + position / window * row_step + position % window * channels;
    const auto place = static_cast<std::int32_t>(position);
    for (std::int64_t c = 0; c < width; ++c) {
      const float here = value(from[c]);
      const bool better = here > best[c];
      best[c] = better ? here : best[c];
      winner[c] = better ? place : winner[c];
    }
  }
  for (std::int64_t c = 0; c < width; ++c) y[c] = element<T>(best[c]);
  for (std::int64_t c = 0; c < width; ++c) argmax[c] = static_cast<std::uint8_t>(winner[c]);
}

// A window of 2 needs no intermediate arrays: four loads, one store.
template <typename T>
HEADRACE_INLINE void pool_pair(const T* __restrict corner, T* __restrict y, std::uint8_t* __restrict argmax,
                               std::int64_t row_step, std::int64_t channels) {
  const T* below = corner + row_step;
#pragma GCC ivdep
  for (std::int64_t c = 0; c < channels; ++c) {
    const float a = value(corner[c]), b = value(corner[c + channels]);
    const float d = value(below[c]), e = value(below[c + channels]);
    const std::int32_t right_top = b > a;
    const std::int32_t right_bottom = e > d;
    const float top = b > a ? b : a;
    const float bottom = e > d ? e : d;
    const std::int32_t lower = bottom > top;
    y[c] = element<T>(bottom > top ? bottom : top);
    argmax[c] = static_cast<std::uint8_t>(lower * (2 + right_bottom) + (1 - lower) * right_top);
  }
}

// One row of the output.
template <typename T>
HEADRACE_INLINE void pool_columns(const T* x, T* y, std::uint8_t* argmax, std::int64_t out_width,
                                  std::int64_t width, std::int64_t channels, std::int64_t window,
                                  std::int64_t stride) {
  const std::int64_t row_step = width * channels;
  for (std::int64_t column = 0; column < out_width; ++column) {
    const T* corner = x + column * stride * channels;
    const std::int64_t to = column * channels;
    if (window == 2) {
      pool_pair(corner, y + to, argmax + to, row_step, channels);
      continue;
    }
    for (std::int64_t c = 0; c < channels; c += kPooledChannels) {
      const std::int64_t strip = channels - c < kPooledChannels ? channels - c : kPooledChannels;
      pool_strip(corner + c, y + to + c, argmax + to + c, strip, row_step, channels, window);
    }
  }
}

HEADRACE_SIMD_MATH void pool_row(const float* x, float* y, std::uint8_t* argmax, std::int64_t out_width,
                                 std::int64_t width, std::int64_t channels, std::int64_t window,
                                 std::int64_t stride) {
  pool_columns(x, y, argmax, out_width, width, channels, window, stride);
}
HEADRACE_SIMD_MATH void pool_row(const BFloat16* x, BFloat16* y, std::uint8_t* argmax, std::int64_t out_width,
                                 std::int64_t width, std::int64_t channels, std::int64_t window,
                                 std::int64_t stride) {
  pool_columns(x, y, argmax, out_width, width, channels, window, stride);
}

template <typename T>
HEADRACE_INLINE void scatter_position(const T* __restrict dy, const std::uint8_t* __restrict argmax,
                                      float* __restrict dx, std::int64_t channels, std::int32_t position) {
  for (std::int64_t c = 0; c < channels; ++c) {
    dx[c] += static_cast<std::int32_t>(argmax[c]) == position ? value(dy[c]) : 0.0F;
  }
}

// Adds one row of dy into the rows of dx that its windows cover.
template <typename T>
HEADRACE_INLINE void scatter_columns(const T* dy, const std::uint8_t* argmax, float* dx, std::int64_t out_width,
                                     std::int64_t width, std::int64_t channels, std::int64_t window,
                                     std::int64_t stride) {
  for (std::int64_t column = 0; column < out_width; ++column) {
    const std::int64_t from = column * channels;
    float* corner = dx + column * stride * channels;
    for (std::int64_t position = 0; position < window * window; ++position) {
      scatter_position(dy + from, argmax + from,
                       corner + (position / window * width + position % window) * channels, channels,
                       static_cast<std::int32_t>(position));
    }
  }
}
HEADRACE_SIMD_MATH void scatter_row(const float* dy, const std::uint8_t* argmax, float* dx, std::int64_t out_width,
                                    std::int64_t width, std::int64_t channels, std::int64_t window,
                                    std::int64_t stride) {
  scatter_columns(dy, argmax, dx, out_width, width, channels, window, stride);
}
HEADRACE_SIMD_MATH void scatter_row(const BFloat16* dy, const std::uint8_t* argmax, float* dx,
                                    std::int64_t out_width, std::int64_t width, std::int64_t channels,
                                    std::int64_t window, std::int64_t stride) {
  scatter_columns(dy, argmax, dx, out_width, width, channels, window, stride);
}

HEADRACE_INLINE float kept(bool keep, float x) noexcept { return keep ? x : 0.0F; }
HEADRACE_INLINE BFloat16 kept(bool keep, BFloat16 x) noexcept {
  return {keep ? x.bits : static_cast<std::uint16_t>(0)};
}

// Handles windows of 2 that touch but never overlap: every element of dx is written once.
template <typename T>
HEADRACE_INLINE void spread_columns(const T* __restrict dy, const std::uint8_t* __restrict argmax,
                                    T* __restrict dx, std::int64_t row_step, std::int64_t out_width,
                                    std::int64_t channels) {
  for (std::int64_t column = 0; column < out_width;
       ++column, dy += channels, argmax += channels, dx += 2 * channels) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int32_t place = argmax[c];
      dx[c] = kept(place == 0, dy[c]);
      dx[c + channels] = kept(place == 1, dy[c]);
      dx[row_step + c] = kept(place == 2, dy[c]);
      dx[row_step + c + channels] = kept(place == 3, dy[c]);
    }
  }
}
HEADRACE_SIMD_MATH void spread_row(const float* dy, const std::uint8_t* argmax, float* dx, std::int64_t row_step,
                                   std::int64_t out_width, std::int64_t channels) {
  spread_columns(dy, argmax, dx, row_step, out_width, channels);
}
HEADRACE_SIMD_MATH void spread_row(const BFloat16* dy, const std::uint8_t* argmax, BFloat16* dx,
                                   std::int64_t row_step, std::int64_t out_width, std::int64_t channels) {
  spread_columns(dy, argmax, dx, row_step, out_width, channels);
}

template <typename T>
void clear(T* x, std::int64_t count) {
  std::memset(x, 0, static_cast<std::size_t>(count) * sizeof(T));
}

template <typename T>
void pool_backward_pairs(const PoolGeometry& g, const T* dy, const std::uint8_t* argmax, T* dx) {
  const std::int64_t row_step = g.width * g.channels;
  const std::int64_t covered = g.out_width() * 2 * g.channels;
  for (std::int64_t row = 0; row < g.out_height(); ++row) {
    T* to = dx + 2 * row * row_step;
    const std::int64_t from = row * g.out_width() * g.channels;
    spread_row(dy + from, argmax + from, to, row_step, g.out_width(), g.channels);
    clear(to + covered, row_step - covered);
    clear(to + row_step + covered, row_step - covered);
  }
  const std::int64_t done = 2 * g.out_height();
  clear(dx + done * row_step, (g.height - done) * row_step);
}

HEADRACE_SIMD_MATH void round_row(const float* x, BFloat16* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = nearest_bf16(x[i]);
}

// Windows may overlap: the sums are f32.
template <typename T>
void pool_backward_sums(const PoolGeometry& g, const T* dy, const std::uint8_t* argmax, float* dx) {
  clear(dx, g.height * g.width * g.channels);
  for (std::int64_t row = 0; row < g.out_height(); ++row) {
    const std::int64_t from = row * g.out_width() * g.channels;
    scatter_row(dy + from, argmax + from, dx + row * g.stride * g.width * g.channels, g.out_width(), g.width,
                g.channels, g.window, g.stride);
  }
}

void pool_backward_image(const PoolGeometry& g, const float* dy, const std::uint8_t* argmax, float* dx) {
  if (g.window == 2 && g.stride == 2) return pool_backward_pairs(g, dy, argmax, dx);
  pool_backward_sums(g, dy, argmax, dx);
}

void pool_backward_image(const PoolGeometry& g, const BFloat16* dy, const std::uint8_t* argmax, BFloat16* dx) {
  if (g.window == 2 && g.stride == 2) return pool_backward_pairs(g, dy, argmax, dx);
  const std::int64_t count = g.height * g.width * g.channels;
  auto* sums = reinterpret_cast<float*>(
      Workspace::of_this_thread().reserve(static_cast<std::size_t>(count) * sizeof(float)));
  pool_backward_sums(g, dy, argmax, sums);
  round_row(sums, dx, count);
}

template <typename T>
HEADRACE_INLINE void spread_pixels(const T* dy, T* dx, std::int64_t pixels, std::int64_t channels) {
  const float share = 1.0F / static_cast<float>(pixels);
  for (std::int64_t c = 0; c < channels; ++c) dx[c] = element<T>(value(dy[c]) * share);
  for (std::int64_t pixel = 1; pixel < pixels; ++pixel) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) dx[pixel * channels + c] = dx[c];
  }
}
HEADRACE_SIMD_MATH void spread_average(const float* dy, float* dx, std::int64_t pixels, std::int64_t channels) {
  spread_pixels(dy, dx, pixels, channels);
}
HEADRACE_SIMD_MATH void spread_average(const BFloat16* dy, BFloat16* dx, std::int64_t pixels,
                                       std::int64_t channels) {
  spread_pixels(dy, dx, pixels, channels);
}

}  // namespace

template <typename T>
void max_pool_forward(const PoolGeometry& geometry, const T* x, T* y, std::uint8_t* argmax) {
  const std::int64_t rows = geometry.out_height();
  const std::int64_t out_row = geometry.out_width() * geometry.channels;
  parallel_ranges(geometry.images * rows, row_grain(out_row), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t from = (row / rows * geometry.height + row % rows * geometry.stride) * geometry.width;
      pool_row(x + from * geometry.channels, y + row * out_row, argmax + row * out_row, geometry.out_width(),
               geometry.width, geometry.channels, geometry.window, geometry.stride);
    }
  });
}

template <typename T>
void max_pool_backward(const PoolGeometry& geometry, const T* dy, const std::uint8_t* argmax, T* dx) {
  const std::int64_t in_image = geometry.height * geometry.width * geometry.channels;
  const std::int64_t out_image = geometry.out_height() * geometry.out_width() * geometry.channels;
  parallel_ranges(geometry.images, row_grain(in_image), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t image = begin; image < end; ++image) {
      pool_backward_image(geometry, dy + image * out_image, argmax + image * out_image, dx + image * in_image);
    }
  });
}

template <typename T>
void global_average_forward(const T* x, T* y, std::int64_t images, std::int64_t pixels, std::int64_t channels) {
  parallel_ranges(images, row_grain(pixels * channels), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t image = begin; image < end; ++image) {
      column_sums(x + image * pixels * channels, y + image * channels, pixels, channels,
                  1.0F / static_cast<float>(pixels));
    }
  });
}

template <typename T>
void global_average_backward(const T* dy, T* dx, std::int64_t images, std::int64_t pixels, std::int64_t channels) {
  parallel_ranges(images, row_grain(pixels * channels), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t image = begin; image < end; ++image) {
      spread_average(dy + image * channels, dx + image * pixels * channels, pixels, channels);
    }
  });
}

#define HEADRACE_POOLING(T)                                                                     \
  template void max_pool_forward(const PoolGeometry&, const T*, T*, std::uint8_t*);             \
  template void max_pool_backward(const PoolGeometry&, const T*, const std::uint8_t*, T*);      \
  template void global_average_forward(const T*, T*, std::int64_t, std::int64_t, std::int64_t); \
  template void global_average_backward(const T*, T*, std::int64_t, std::int64_t, std::int64_t);
HEADRACE_POOLING(float)
HEADRACE_POOLING(BFloat16)
#undef HEADRACE_POOLING

}  // namespace headrace::cpu
