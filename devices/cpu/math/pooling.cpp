// Pooling over channels-last images.
#include <algorithm>
#include <cstring>

#include "headrace/devices/base/simd.h"
#include "headrace/devices/cpu/math/cpu_kernel_table.h"
#include "headrace/devices/cpu/math/elementwise.h"
#include "headrace/devices/cpu/math/parallel.h"

namespace headrace::cpu {
namespace {

// A window over (images, height, width, channels); window^2 <= 256, pad <= window / 2.
struct PoolGeometry {
  std::int64_t images = 0, height = 0, width = 0, channels = 0;
  std::int64_t window = 0, stride = 0;
  std::int64_t pad = 0;  // max pooling only

  std::int64_t out_height() const noexcept { return (height + 2 * pad - window) / stride + 1; }
  std::int64_t out_width() const noexcept { return (width + 2 * pad - window) / stride + 1; }
};

PoolGeometry pool_geometry(const TensorView& x, const PoolOptions& options) {
  return {.images = x.shape[0],
          .height = x.shape[1],
          .width = x.shape[2],
          .channels = x.shape[3],
          .window = options.window,
          .stride = options.stride,
          .pad = options.pad};
}

constexpr std::int64_t kPooledChannels = 64;  // channels at a time

// The places of a window along one axis that lie within the image: [begin, end).
struct Inside {
  std::int64_t begin, end;
};
// `corner` is the window's first place in the image, negative if that is padding.
HEADRACE_INLINE Inside inside(std::int64_t corner, std::int64_t window, std::int64_t extent) noexcept {
  return {corner < 0 ? -corner : 0, corner + window > extent ? extent - corner : window};
}

// Finds the winners of one window for `width` <= kPooledChannels channels from `corner` on.
template <typename T>
HEADRACE_INLINE void pool_strip(const T* corner, T* y, std::uint8_t* argmax, std::int64_t width,
                                std::int64_t row_step, std::int64_t channels, std::int64_t window,
                                const Inside& rows, const Inside& columns) {
  float best[kPooledChannels];
  std::int32_t winner[kPooledChannels];
  const T* first = corner + rows.begin * row_step + columns.begin * channels;
  for (std::int64_t c = 0; c < width; ++c) {
    best[c] = value(first[c]);
    winner[c] = static_cast<std::int32_t>(rows.begin * window + columns.begin);
  }
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    for (std::int64_t column = columns.begin; column < columns.end; ++column) {
      const T* from = corner + row * row_step + column * channels;
      const auto place = static_cast<std::int32_t>(row * window + column);
      for (std::int64_t c = 0; c < width; ++c) {
        const float here = value(from[c]);
        const bool better = here > best[c] || here != here;  // the last NaN wins
        best[c] = better ? here : best[c];
        winner[c] = better ? place : winner[c];
      }
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
    const std::int32_t right_top = b > a || b != b;
    const std::int32_t right_bottom = e > d || e != e;
    const float top = b > a || b != b ? b : a;
    const float bottom = e > d || e != e ? e : d;
    const std::int32_t lower = bottom > top || bottom != bottom;
    y[c] = element<T>(bottom > top || bottom != bottom ? bottom : top);
    argmax[c] = static_cast<std::uint8_t>(lower * (2 + right_bottom) + (1 - lower) * right_top);
  }
}

// One row of the output, from an image at x.
template <typename T>
HEADRACE_INLINE void pool_columns(const PoolGeometry& g, std::int64_t row, const T* x, T* y,
                                  std::uint8_t* argmax) {
  const std::int64_t row_step = g.width * g.channels, top = row * g.stride - g.pad;
  const Inside rows = inside(top, g.window, g.height);
  for (std::int64_t column = 0; column < g.out_width(); ++column) {
    const std::int64_t left = column * g.stride - g.pad;
    const T* corner = x + top * row_step + left * g.channels;
    const std::int64_t to = column * g.channels;
    if (g.window == 2 && g.pad == 0) {
      pool_pair(corner, y + to, argmax + to, row_step, g.channels);
      continue;
    }
    const Inside columns = inside(left, g.window, g.width);
    for (std::int64_t c = 0; c < g.channels; c += kPooledChannels) {
      const std::int64_t strip = g.channels - c < kPooledChannels ? g.channels - c : kPooledChannels;
      pool_strip(corner + c, y + to + c, argmax + to + c, strip, row_step, g.channels, g.window, rows, columns);
    }
  }
}

HEADRACE_SIMD_MATH void pool_row(const PoolGeometry& g, std::int64_t row, const float* x, float* y,
                                 std::uint8_t* argmax) {
  pool_columns(g, row, x, y, argmax);
}
HEADRACE_SIMD_MATH void pool_row(const PoolGeometry& g, std::int64_t row, const BFloat16* x, BFloat16* y,
                                 std::uint8_t* argmax) {
  pool_columns(g, row, x, y, argmax);
}

template <typename T>
HEADRACE_INLINE void scatter_position(const T* __restrict dy, const std::uint8_t* __restrict argmax,
                                      float* __restrict dx, std::int64_t channels, std::int32_t position) {
  for (std::int64_t c = 0; c < channels; ++c) {
    dx[c] += static_cast<std::int32_t>(argmax[c]) == position ? value(dy[c]) : 0.0F;
  }
}

// Adds one row of dy into the rows of the image dx that its windows cover.
template <typename T>
HEADRACE_INLINE void scatter_columns(const PoolGeometry& g, std::int64_t row, const T* dy,
                                     const std::uint8_t* argmax, float* dx) {
  const std::int64_t top = row * g.stride - g.pad;
  const Inside rows = inside(top, g.window, g.height);
  for (std::int64_t column = 0; column < g.out_width(); ++column) {
    const std::int64_t from = column * g.channels, left = column * g.stride - g.pad;
    const Inside columns = inside(left, g.window, g.width);
    for (std::int64_t y = rows.begin; y < rows.end; ++y) {
      for (std::int64_t x = columns.begin; x < columns.end; ++x) {
        scatter_position(dy + from, argmax + from, dx + ((top + y) * g.width + left + x) * g.channels, g.channels,
                         static_cast<std::int32_t>(y * g.window + x));
      }
    }
  }
}
HEADRACE_SIMD_MATH void scatter_row(const PoolGeometry& g, std::int64_t row, const float* dy,
                                    const std::uint8_t* argmax, float* dx) {
  scatter_columns(g, row, dy, argmax, dx);
}
HEADRACE_SIMD_MATH void scatter_row(const PoolGeometry& g, std::int64_t row, const BFloat16* dy,
                                    const std::uint8_t* argmax, float* dx) {
  scatter_columns(g, row, dy, argmax, dx);
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
    scatter_row(g, row, dy + from, argmax + from, dx);
  }
}

// Returns whether windows are of 2 and touch.
bool are_pairs(const PoolGeometry& g) noexcept { return g.window == 2 && g.stride == 2 && g.pad == 0; }

void pool_backward_image(const PoolGeometry& g, const float* dy, const std::uint8_t* argmax, float* dx) {
  if (are_pairs(g)) return pool_backward_pairs(g, dy, argmax, dx);
  pool_backward_sums(g, dy, argmax, dx);
}

void pool_backward_image(const PoolGeometry& g, const BFloat16* dy, const std::uint8_t* argmax, BFloat16* dx) {
  if (are_pairs(g)) return pool_backward_pairs(g, dy, argmax, dx);
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

template <typename T>
void max_pool_forward(const PoolGeometry& geometry, const T* x, T* y, std::uint8_t* argmax) {
  const std::int64_t in_image = geometry.height * geometry.width * geometry.channels;
  const std::int64_t rows = geometry.out_height();
  const std::int64_t out_row = geometry.out_width() * geometry.channels;
  parallel_ranges(geometry.images * rows, row_grain(out_row), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      pool_row(geometry, row % rows, x + row / rows * in_image, y + row * out_row, argmax + row * out_row);
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

// Returns the input position of the window's corner for pixel (row, column) of the output.
std::int64_t corner(const PoolGeometry& g, std::int64_t row, std::int64_t column) {
  return (row * g.stride * g.width + column * g.stride) * g.channels;
}

template <typename T>
HEADRACE_INLINE void average_window(const PoolGeometry& g, const T* x, T* y) {
  const float share = 1.0F / static_cast<float>(g.window * g.window);
  for (std::int64_t c = 0; c < g.channels; ++c) {
    float sum = 0;
    for (std::int64_t i = 0; i < g.window; ++i) {
      for (std::int64_t k = 0; k < g.window; ++k) sum += value(x[(i * g.width + k) * g.channels + c]);
    }
    y[c] = element<T>(sum * share);
  }
}
HEADRACE_SIMD_MATH void average_row(const PoolGeometry& g, std::int64_t row, const float* x, float* y) {
  for (std::int64_t column = 0; column < g.out_width(); ++column) {
    average_window(g, x + corner(g, row, column), y + column * g.channels);
  }
}
HEADRACE_SIMD_MATH void average_row(const PoolGeometry& g, std::int64_t row, const BFloat16* x, BFloat16* y) {
  for (std::int64_t column = 0; column < g.out_width(); ++column) {
    average_window(g, x + corner(g, row, column), y + column * g.channels);
  }
}

// The first window of one axis that covers `position`, and the one after the last.
struct Covering {
  std::int64_t first, end;
};
Covering covering(std::int64_t position, std::int64_t window, std::int64_t stride, std::int64_t windows) {
  const std::int64_t first = position < window ? 0 : (position - window) / stride + 1;
  return {first, std::min(windows, position / stride + 1)};
}

// Gathers: each pixel looks at the windows over it, in the order of the output.
template <typename T>
HEADRACE_INLINE void gather_pixel(const PoolGeometry& g, const Covering& rows, const Covering& columns,
                                  const T* dy, T* dx) {
  const float share = 1.0F / static_cast<float>(g.window * g.window);
  for (std::int64_t c = 0; c < g.channels; ++c) {
    float sum = 0;
    for (std::int64_t row = rows.first; row < rows.end; ++row) {
      for (std::int64_t column = columns.first; column < columns.end; ++column) {
        sum += value(dy[(row * g.out_width() + column) * g.channels + c]);
      }
    }
    dx[c] = element<T>(sum * share);
  }
}
HEADRACE_SIMD_MATH void gather_row(const PoolGeometry& g, std::int64_t row, const float* dy, float* dx) {
  const Covering rows = covering(row, g.window, g.stride, g.out_height());
  for (std::int64_t column = 0; column < g.width; ++column) {
    gather_pixel(g, rows, covering(column, g.window, g.stride, g.out_width()), dy, dx + column * g.channels);
  }
}
HEADRACE_SIMD_MATH void gather_row(const PoolGeometry& g, std::int64_t row, const BFloat16* dy, BFloat16* dx) {
  const Covering rows = covering(row, g.window, g.stride, g.out_height());
  for (std::int64_t column = 0; column < g.width; ++column) {
    gather_pixel(g, rows, covering(column, g.window, g.stride, g.out_width()), dy, dx + column * g.channels);
  }
}

template <typename T>
void average_pool_forward(const PoolGeometry& g, const T* x, T* y) {
  const std::int64_t in_image = g.height * g.width * g.channels, out_row = g.out_width() * g.channels;
  const std::int64_t grain = row_grain(out_row * g.window * g.window);
  parallel_ranges(g.images * g.out_height(), grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      average_row(g, row % g.out_height(), x + row / g.out_height() * in_image, y + row * out_row);
    }
  });
}

template <typename T>
void average_pool_backward(const PoolGeometry& g, const T* dy, T* dx) {
  const std::int64_t out_image = g.out_height() * g.out_width() * g.channels, in_row = g.width * g.channels;
  parallel_ranges(g.images * g.height, row_grain(in_row), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      gather_row(g, row % g.height, dy + row / g.height * out_image, dx + row * in_row);
    }
  });
}

}  // namespace

void CpuKernels::run(Stream& stream, const kernel::MaxPoolForward& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::max_pool_forward(pool_geometry(of.x, of.options), of.x.as<T>(), of.y.as<T>(),
                            of.argmax.as<std::uint8_t>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::MaxPoolBackward& of) {
  submit(stream, [=] {
    with_type(of.dx, [&]<typename T>(T) {
      cpu::max_pool_backward(pool_geometry(of.dx, of.options), of.dy.as<T>(), of.argmax.as<std::uint8_t>(),
                             of.dx.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::AveragePoolForward& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::average_pool_forward(pool_geometry(of.x, of.options), of.x.as<T>(), of.y.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::AveragePoolBackward& of) {
  submit(stream, [=] {
    with_type(of.dx, [&]<typename T>(T) {
      cpu::average_pool_backward(pool_geometry(of.dx, of.options), of.dy.as<T>(), of.dx.as<T>());
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::GlobalAveragePoolForward& of) {
  submit(stream, [=] {
    with_type(of.x, [&]<typename T>(T) {
      cpu::global_average_forward(of.x.as<T>(), of.y.as<T>(), of.x.shape[0], of.x.shape[1] * of.x.shape[2],
                                  of.x.shape[3]);
    });
  });
}

void CpuKernels::run(Stream& stream, const kernel::GlobalAveragePoolBackward& of) {
  submit(stream, [=] {
    with_type(of.dx, [&]<typename T>(T) {
      cpu::global_average_backward(of.dy.as<T>(), of.dx.as<T>(), of.dx.shape[0], of.dx.shape[1] * of.dx.shape[2],
                                   of.dx.shape[3]);
    });
  });
}

}  // namespace headrace::cpu
