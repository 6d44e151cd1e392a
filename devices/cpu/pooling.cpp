#include "headrace/devices/cpu/pooling.h"

#include <cstring>

#include "headrace/devices/cpu/column_sums.h"
#include "headrace/devices/cpu/parallel.h"
#include "headrace/devices/cpu/simd.h"

namespace headrace::cpu {
namespace {

constexpr std::int64_t kStrip = 64;  // channels at a time

// The winners of one window for `width` <= kStrip channels from `corner` on.
HEADRACE_INLINE void pool_strip(const float* corner, float* y, std::uint8_t* argmax, std::int64_t width,
                                std::int64_t row_step, std::int64_t channels, std::int64_t window) {
  float best[kStrip];
  std::int32_t winner[kStrip];
  for (std::int64_t c = 0; c < width; ++c) {
    best[c] = corner[c];
    winner[c] = 0;
  }
  for (std::int64_t position = 1; position < window * window; ++position) {
    const float* from = corner + position / window * row_step + position % window * channels;
    const auto place = static_cast<std::int32_t>(position);
    for (std::int64_t c = 0; c < width; ++c) {
      const bool better = from[c] > best[c];
      best[c] = better ? from[c] : best[c];
      winner[c] = better ? place : winner[c];
    }
  }
  for (std::int64_t c = 0; c < width; ++c) y[c] = best[c];
  for (std::int64_t c = 0; c < width; ++c) argmax[c] = static_cast<std::uint8_t>(winner[c]);
}

// A window of 2 has no arrays in between: four loads, one store.
HEADRACE_INLINE void pool_pair(const float* __restrict corner, float* __restrict y,
                               std::uint8_t* __restrict argmax, std::int64_t row_step, std::int64_t channels) {
  const float* below = corner + row_step;
  for (std::int64_t c = 0; c < channels; ++c) {
    const float a = corner[c], b = corner[c + channels], d = below[c], e = below[c + channels];
    const std::int32_t right_top = b > a;
    const std::int32_t right_bottom = e > d;
    const float top = b > a ? b : a;
    const float bottom = e > d ? e : d;
    const std::int32_t lower = bottom > top;
    y[c] = bottom > top ? bottom : top;
    argmax[c] = static_cast<std::uint8_t>(lower * (2 + right_bottom) + (1 - lower) * right_top);
  }
}

// One row of the output.
HEADRACE_SIMD void pool_row(const float* x, float* y, std::uint8_t* argmax, std::int64_t out_width,
                            std::int64_t width, std::int64_t channels, std::int64_t window, std::int64_t stride) {
  const std::int64_t row_step = width * channels;
  for (std::int64_t column = 0; column < out_width; ++column) {
    const float* corner = x + column * stride * channels;
    const std::int64_t to = column * channels;
    if (window == 2) {
      pool_pair(corner, y + to, argmax + to, row_step, channels);
      continue;
    }
    for (std::int64_t c = 0; c < channels; c += kStrip) {
      const std::int64_t strip = channels - c < kStrip ? channels - c : kStrip;
      pool_strip(corner + c, y + to + c, argmax + to + c, strip, row_step, channels, window);
    }
  }
}

HEADRACE_INLINE void scatter_position(const float* __restrict dy, const std::uint8_t* __restrict argmax,
                                      float* __restrict dx, std::int64_t channels, std::int32_t position) {
  for (std::int64_t c = 0; c < channels; ++c) {
    dx[c] += static_cast<std::int32_t>(argmax[c]) == position ? dy[c] : 0.0F;
  }
}

// Adds one row of dy into the rows of dx that its windows cover.
HEADRACE_SIMD void scatter_row(const float* dy, const std::uint8_t* argmax, float* dx, std::int64_t out_width,
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

// Windows of 2 that touch but never overlap: every element of dx is written once.
HEADRACE_SIMD void spread_pair(const float* __restrict dy, const std::uint8_t* __restrict argmax,
                               float* __restrict dx, std::int64_t row_step, std::int64_t out_width,
                               std::int64_t channels) {
  for (std::int64_t column = 0; column < out_width;
       ++column, dy += channels, argmax += channels, dx += 2 * channels) {
    for (std::int64_t c = 0; c < channels; ++c) {
      const std::int32_t place = argmax[c];
      dx[c] = place == 0 ? dy[c] : 0.0F;
      dx[c + channels] = place == 1 ? dy[c] : 0.0F;
      dx[row_step + c] = place == 2 ? dy[c] : 0.0F;
      dx[row_step + c + channels] = place == 3 ? dy[c] : 0.0F;
    }
  }
}

void clear(float* x, std::int64_t count) { std::memset(x, 0, static_cast<std::size_t>(count) * sizeof(float)); }

void pool_backward_pairs(const PoolGeometry& g, const float* dy, const std::uint8_t* argmax, float* dx) {
  const std::int64_t row_step = g.width * g.channels;
  const std::int64_t covered = g.out_width() * 2 * g.channels;
  for (std::int64_t row = 0; row < g.out_height(); ++row) {
    float* to = dx + 2 * row * row_step;
    const std::int64_t from = row * g.out_width() * g.channels;
    spread_pair(dy + from, argmax + from, to, row_step, g.out_width(), g.channels);
    clear(to + covered, row_step - covered);
    clear(to + row_step + covered, row_step - covered);
  }
  const std::int64_t done = 2 * g.out_height();
  clear(dx + done * row_step, (g.height - done) * row_step);
}

void pool_backward_image(const PoolGeometry& g, const float* dy, const std::uint8_t* argmax, float* dx) {
  if (g.window == 2 && g.stride == 2) return pool_backward_pairs(g, dy, argmax, dx);
  clear(dx, g.height * g.width * g.channels);
  for (std::int64_t row = 0; row < g.out_height(); ++row) {
    const std::int64_t from = row * g.out_width() * g.channels;
    scatter_row(dy + from, argmax + from, dx + row * g.stride * g.width * g.channels, g.out_width(), g.width,
                g.channels, g.window, g.stride);
  }
}

HEADRACE_SIMD void spread_average(const float* dy, float* dx, std::int64_t pixels, std::int64_t channels) {
  const float share = 1.0F / static_cast<float>(pixels);
  for (std::int64_t c = 0; c < channels; ++c) dx[c] = dy[c] * share;
  for (std::int64_t pixel = 1; pixel < pixels; ++pixel) {
#pragma GCC ivdep
    for (std::int64_t c = 0; c < channels; ++c) dx[pixel * channels + c] = dx[c];
  }
}

}  // namespace

void max_pool_forward(const PoolGeometry& geometry, const float* x, float* y, std::uint8_t* argmax) {
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

void max_pool_backward(const PoolGeometry& geometry, const float* dy, const std::uint8_t* argmax, float* dx) {
  const std::int64_t in_image = geometry.height * geometry.width * geometry.channels;
  const std::int64_t out_image = geometry.out_height() * geometry.out_width() * geometry.channels;
  parallel_ranges(geometry.images, row_grain(in_image), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t image = begin; image < end; ++image) {
      pool_backward_image(geometry, dy + image * out_image, argmax + image * out_image, dx + image * in_image);
    }
  });
}

void global_average_forward(const float* x, float* y, std::int64_t images, std::int64_t pixels,
                            std::int64_t channels) {
  parallel_ranges(images, row_grain(pixels * channels), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t image = begin; image < end; ++image) {
      column_sums(x + image * pixels * channels, y + image * channels, pixels, channels,
                  1.0F / static_cast<float>(pixels));
    }
  });
}

void global_average_backward(const float* dy, float* dx, std::int64_t images, std::int64_t pixels,
                             std::int64_t channels) {
  parallel_ranges(images, row_grain(pixels * channels), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t image = begin; image < end; ++image) {
      spread_average(dy + image * channels, dx + image * pixels * channels, pixels, channels);
    }
  });
}

}  // namespace headrace::cpu
