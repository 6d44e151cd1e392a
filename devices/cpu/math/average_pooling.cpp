#include "headrace/devices/cpu/math/pooling.h"

#include <algorithm>

#include "headrace/devices/cpu/math/element.h"
#include "headrace/devices/cpu/math/parallel.h"

namespace headrace::cpu {
namespace {

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

}  // namespace

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

template void average_pool_forward(const PoolGeometry&, const float*, float*);
template void average_pool_forward(const PoolGeometry&, const BFloat16*, BFloat16*);
template void average_pool_backward(const PoolGeometry&, const float*, float*);
template void average_pool_backward(const PoolGeometry&, const BFloat16*, BFloat16*);

}  // namespace headrace::cpu
