// Pooling as work for threads: a row is a pixel, of the output forward and of the input backward. Private to the
// CUDA backend.
#pragma once

#include "headrace/devices/cuda/math/column_grid.h"
#include "headrace/devices/cuda/math/element.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

struct PoolShape {
  std::int64_t height, width, channels;
  std::int64_t out_height, out_width;
  std::int64_t window, stride;
};

// a / b for a >= 0, b > 0: in 32 bits where they fit, as 64 are slow on a GPU.
HEADRACE_HOST_DEVICE constexpr std::int64_t quotient(std::int64_t a, std::int64_t b) {
  if (a <= 0xFFFFFFFFLL && b <= 0xFFFFFFFFLL) return static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b);
  return a / b;
}

struct Pixel {
  std::int64_t image, y, x;
};
// Where pixel number `index` of images (height, width) lies.
HEADRACE_HOST_DEVICE constexpr Pixel pixel_of(std::int64_t index, std::int64_t height, std::int64_t width) {
  const std::int64_t line = quotient(index, width);
  const std::int64_t image = quotient(line, height);
  return {image, line - image * height, index - line * width};
}

// The windows of one axis that cover `position`: [first, last], empty when last < first.
struct Windows {
  std::int64_t first, last;
};
HEADRACE_HOST_DEVICE constexpr Windows covering(std::int64_t position, std::int64_t window, std::int64_t stride,
                                                std::int64_t windows) {
  const std::int64_t first = position < window ? 0 : quotient(position - window, stride) + 1;
  const std::int64_t last = quotient(position, stride);
  return {first, last < windows ? last : windows - 1};
}

template <typename T>
struct MaxPoolForward {
  PoolShape shape;
  const T* x;
  T* y;
  std::uint8_t* argmax;

  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(Nothing, std::int64_t row, std::int64_t column) const {
    pool<kWidth>(row, column);
  }
  // Stores the winners and returns them.
  template <int kWidth>
  HEADRACE_HOST_DEVICE Pack<T, kWidth> pool(std::int64_t row, std::int64_t column) const {
    const Pixel out = pixel_of(row, shape.out_height, shape.out_width);
    const std::int64_t first_line = out.image * shape.height + out.y * shape.stride;
    const T* corner = x + (first_line * shape.width + out.x * shape.stride) * shape.channels + column;
    Pack<T, kWidth> best = load_pack<kWidth>(corner);
    Pack<std::uint8_t, kWidth> winner{};
    for (std::int64_t dy = 0; dy < shape.window; ++dy) {
      for (std::int64_t dx = dy == 0 ? 1 : 0; dx < shape.window; ++dx) {
        const Pack<T, kWidth> other = load_pack<kWidth>(corner + (dy * shape.width + dx) * shape.channels);
        for (int k = 0; k < kWidth; ++k) {
          if (!(value_of(other.values[k]) > value_of(best.values[k]))) continue;
          best.values[k] = other.values[k];
          winner.values[k] = static_cast<std::uint8_t>(dy * shape.window + dx);
        }
      }
    }
    store_pack(y + row * shape.channels + column, best);
    store_pack(argmax + row * shape.channels + column, winner);
    return best;
  }
};

// Gathers: each input pixel looks at the windows over it, in the order of the output. No two threads write one
// place.
template <typename T>
struct MaxPoolBackward {
  PoolShape shape;
  const T* dy;
  const std::uint8_t* argmax;
  T* dx;

  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(Nothing, std::int64_t row, std::int64_t column) const {
    const Pixel in = pixel_of(row, shape.height, shape.width);
    const Windows lines = covering(in.y, shape.window, shape.stride, shape.out_height);
    const Windows rows = covering(in.x, shape.window, shape.stride, shape.out_width);
    float sum[kWidth] = {};
    for (std::int64_t oy = lines.first; oy <= lines.last; ++oy) {
      for (std::int64_t ox = rows.first; ox <= rows.last; ++ox) {
        const std::int64_t place = (in.y - oy * shape.stride) * shape.window + (in.x - ox * shape.stride);
        const std::int64_t pixel = (in.image * shape.out_height + oy) * shape.out_width + ox;
        const std::int64_t from = pixel * shape.channels + column;
        const Pack<std::uint8_t, kWidth> winner = load_pack<kWidth>(argmax + from);
        const Pack<T, kWidth> gradient = load_pack<kWidth>(dy + from);
        for (int k = 0; k < kWidth; ++k) {
          if (winner.values[k] == place) sum[k] += value_of(gradient.values[k]);
        }
      }
    }
    Pack<T, kWidth> pack;
    for (int k = 0; k < kWidth; ++k) pack.values[k] = element_of<T>(sum[k]);
    store_pack(dx + row * shape.channels + column, pack);
  }
};

inline PoolShape pool_shape(const TensorView& x, const TensorView& y, const PoolOptions& options) {
  return {x.shape[1], x.shape[2], x.shape[3], y.shape[1], y.shape[2], options.window, options.stride};
}

template <typename Launcher>
void submit_max_pool_forward(Launcher& launch, const TensorView& x, const TensorView& y, const TensorView& argmax,
                             const PoolOptions& options) {
  by_type(x.dtype, [&](auto type) {
    using T = decltype(type);
    const std::int64_t channels = y.shape[3];
    const MaxPoolForward<T> work{pool_shape(x, y, options), x.as<T>(), y.as<T>(), argmax.as<std::uint8_t>()};
    constexpr int kWidth = kPackWidth<T>;
    by_width<kWidth>(channels % kWidth == 0 && packs_fit(kWidth, x, y, argmax), [&](auto width) {
      launch.template columns<width()>(work, column_grid(y.elements() / channels, channels, width()));
    });
  });
}

template <typename Launcher>
void submit_max_pool_backward(Launcher& launch, const TensorView& dy, const TensorView& argmax,
                              const TensorView& dx, const PoolOptions& options) {
  by_type(dy.dtype, [&](auto type) {
    using T = decltype(type);
    const std::int64_t channels = dx.shape[3];
    const MaxPoolBackward<T> work{pool_shape(dx, dy, options), dy.as<T>(), argmax.as<std::uint8_t>(), dx.as<T>()};
    constexpr int kWidth = kPackWidth<T>;
    by_width<kWidth>(channels % kWidth == 0 && packs_fit(kWidth, dy, dx, argmax), [&](auto width) {
      launch.template columns<width()>(work, column_grid(dx.elements() / channels, channels, width()));
    });
  });
}

}  // namespace headrace::cuda
