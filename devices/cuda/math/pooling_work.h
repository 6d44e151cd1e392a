// Pooling as work for threads: a row is a pixel, of the output forward and of the input backward. Private to the
// CUDA backend.
#pragma once

#include <cstdint>
#include <limits>

#include "headrace/devices/cuda/element.h"
#include "headrace/devices/cuda/math/column_grid.h"
#include "headrace/devices/cuda/math/elementwise_work.h"
#include "headrace/devices/kernels.h"

namespace headrace::cuda {

// Returns the upper half of the product.
HEADRACE_HOST_DEVICE std::uint64_t upper_product(std::uint64_t a, std::uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{a} * b >> 64);
#endif
}

// Divides n >= 0 by a divisor d >= 1, exactly if n d < 2^64. With r = ceil(2^64 / d), r d = 2^64 + e and e < d:
// n r / 2^64 is n / d + n e / (2^64 d), beyond n / d by less than 1 / d.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::int64_t divisor)
      : reciprocal_(divisor == 1
                        ? 0
                        : std::numeric_limits<std::uint64_t>::max() / static_cast<std::uint64_t>(divisor) + 1) {}

  HEADRACE_HOST_DEVICE std::int64_t quotient(std::int64_t n) const {
    if (reciprocal_ == 0) return n;
    return static_cast<std::int64_t>(upper_product(static_cast<std::uint64_t>(n), reciprocal_));
  }

 private:
  std::uint64_t reciprocal_ = 0;  // 0: of 1
};

// Divides 0 <= n < 2^31 by a divisor d >= 1. With 2^(s - 1) < d <= 2^s and r = ceil(2^(31 + s) / d), which fits
// 32 bits, r d = 2^(31 + s) + e and e < d: n r / 2^(31 + s) is beyond n / d by n e / (2^(31 + s) d), less than
// 1 / d.
class SmallDivisor {
 public:
  explicit SmallDivisor(int divisor) : whole_(divisor == 1 ? ~std::uint32_t{0} : 0) {
    if (divisor == 1) return;
    const auto d = static_cast<std::uint64_t>(divisor);
    while ((std::uint64_t{1} << (shift_ + 1)) < d) ++shift_;
    reciprocal_ = static_cast<std::uint32_t>(((std::uint64_t{1} << (shift_ + 32)) + d - 1) / d);
  }

  HEADRACE_HOST_DEVICE std::uint32_t quotient(std::uint32_t n) const {
    return (static_cast<std::uint32_t>(std::uint64_t{n} * reciprocal_ >> 32) + (n & whole_)) >> shift_;
  }

 private:
  std::uint32_t reciprocal_ = 0;
  std::uint32_t whole_;  // all bits for a divisor of 1, for which there is no reciprocal
  int shift_ = 0;        // s - 1
};

struct Pixel {
  std::int64_t image;
  int y, x;
};

// Pixels of images of one size, fewer than 2^31 each, in the order of memory.
struct PixelGrid {
  PixelGrid(std::int64_t high, std::int64_t wide)
      : height(static_cast<int>(high)), width(static_cast<int>(wide)), by_height(high), by_width(wide) {}

  HEADRACE_HOST_DEVICE Pixel pixel(std::int64_t index) const {
    const std::int64_t line = by_width.quotient(index);
    const std::int64_t image = by_height.quotient(line);
    return {image, static_cast<int>(line - image * height), static_cast<int>(index - line * width)};
  }

  int height, width;
  Divisor by_height, by_width;
};

// Images hold fewer than 2^31 elements (kernel_checks.cpp), so indices within one are 32-bit.
struct PoolShape {
  PixelGrid in, out;
  int channels, window, stride, pad;
  Divisor by_stride;

  HEADRACE_HOST_DEVICE std::int64_t in_image() const { return std::int64_t{in.height} * in.width * channels; }
};

// The windows of one axis that cover `position`: [first, last], empty if last < first.
struct Windows {
  int first, last;
};
HEADRACE_HOST_DEVICE Windows covering(int position, int window, const Divisor& by_stride, int windows) {
  const int first = position < window ? 0 : static_cast<int>(by_stride.quotient(position - window)) + 1;
  const int last = static_cast<int>(by_stride.quotient(position));
  return {first, last < windows ? last : windows - 1};
}

// Windows whose size is known at compile time: their loops are unrolled. 0: any, up to 16.
template <int kWindow>
HEADRACE_HOST_DEVICE int window_of(const PoolShape& shape) {
  return kWindow > 0 ? kWindow : shape.window;
}

// Returns how far loops over such a window are unrolled.
constexpr int unrolled(int window) { return window > 0 ? window : 1; }

// Calls function(integral_constant) with such a window.
template <typename Function>
void by_window(int window, const Function& function) {
  if (window == 2) return function(std::integral_constant<int, 2>{});
  if (window == 3) return function(std::integral_constant<int, 3>{});
  function(std::integral_constant<int, 0>{});
}
// Like by_window(), for backward passes specialised for windows that touch, with neither overlap, gaps nor
// padding: 0 for all others.
template <typename Function>
void by_touching_window(const PoolOptions& options, const Function& function) {
  by_window(options.window == options.stride && options.pad == 0 ? options.window : 0, function);
}

// Returns whether a pixel is the winner over earlier ones: the last NaN is, else the first maximum.
HEADRACE_HOST_DEVICE bool beats(float pixel, float best) { return pixel > best || pixel != pixel; }

template <typename T, int kWindow>
struct MaxPoolForward {
  static constexpr int kResidentBlocks = kWindow == 3 ? 4 : cuda::kResidentBlocks;

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
    const Pixel out = shape.out.pixel(row);
    const int place = (out.y * shape.in.width + out.x) * shape.stride * shape.channels;
    const T* corner = x + out.image * shape.in_image() + place + column;
    Pack<T, kWidth> best = load_pack<kWidth>(corner);
    Pack<std::uint8_t, kWidth> winner{};
    const int window = window_of<kWindow>(shape);
    HEADRACE_UNROLLED(unrolled(kWindow))
    for (int dy = 0; dy < window; ++dy) {
      HEADRACE_UNROLLED(unrolled(kWindow))
      for (int dx = dy == 0 ? 1 : 0; dx < window; ++dx) {
        const Pack<T, kWidth> other = load_pack<kWidth>(corner + (dy * shape.in.width + dx) * shape.channels);
        for (int k = 0; k < kWidth; ++k) {
          if (!beats(value_of(other.values[k]), value_of(best.values[k]))) continue;
          best.values[k] = other.values[k];
          winner.values[k] = static_cast<std::uint8_t>(dy * window + dx);
        }
      }
    }
    const std::int64_t to = row * shape.channels + column;
    store_pack(y + to, best);
    store_pack(argmax + to, winner);
    return best;
  }
};

// For windows that reach beyond the image.
template <typename T, int kWindow>
struct PaddedMaxPoolForward {
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
    const Pixel out = shape.out.pixel(row);
    const int top = out.y * shape.stride - shape.pad, left = out.x * shape.stride - shape.pad;
    const T* image = x + out.image * shape.in_image() + column;
    const int window = window_of<kWindow>(shape);
    Pack<T, kWidth> best{};
    Pack<std::uint8_t, kWidth> winner{};
    bool found = false;  // the first pixel within the image is the first winner
    HEADRACE_UNROLLED(unrolled(kWindow))
    for (int dy = 0; dy < window; ++dy) {
      HEADRACE_UNROLLED(unrolled(kWindow))
      for (int dx = 0; dx < window; ++dx) {
        const int in_y = top + dy, in_x = left + dx;
        if (in_y < 0 || in_x < 0 || in_y >= shape.in.height || in_x >= shape.in.width) continue;
        const Pack<T, kWidth> other = load_pack<kWidth>(image + (in_y * shape.in.width + in_x) * shape.channels);
        for (int k = 0; k < kWidth; ++k) {
          if (found && !beats(value_of(other.values[k]), value_of(best.values[k]))) continue;
          best.values[k] = other.values[k];
          winner.values[k] = static_cast<std::uint8_t>(dy * window + dx);
        }
        found = true;
      }
    }
    const std::int64_t to = row * shape.channels + column;
    store_pack(y + to, best);
    store_pack(argmax + to, winner);
  }
};

// The input pixels of one window, if windows touch: its own, and for the last of an axis the pixels after it that
// belong to no window.
template <typename T, int kWindow>
struct PoolingCell {
  // Writes the gradients of the cell's pixels: `gradient` to the winner, 0 to the others.
  template <int kWidth>
  HEADRACE_HOST_DEVICE static void write(const PoolShape& shape, std::int64_t row, std::int64_t column,
                                         const Pack<T, kWidth>& gradient, const Pack<std::uint8_t, kWidth>& winner,
                                         T* dx) {
    const Pixel out = shape.out.pixel(row);
    const int top = out.y * kWindow, left = out.x * kWindow, line = shape.in.width * shape.channels;
    T* corner = dx + out.image * shape.in_image() + (top * shape.in.width + left) * shape.channels + column;
    HEADRACE_UNROLLED(kWindow)
    for (int y = 0; y < kWindow; ++y) {
      HEADRACE_UNROLLED(kWindow)
      for (int x = 0; x < kWindow; ++x) {
        Pack<T, kWidth> pack{};
        for (int k = 0; k < kWidth; ++k) {
          if (winner.values[k] == y * kWindow + x) pack.values[k] = gradient.values[k];
        }
        store_pack(corner + y * line + x * shape.channels, pack);
      }
    }
    const int high = out.y + 1 == shape.out.height ? shape.in.height - top : kWindow;
    const int wide = out.x + 1 == shape.out.width ? shape.in.width - left : kWindow;
    HEADRACE_ROLLED
    for (int y = 0; y < high; ++y, corner += line) {
      HEADRACE_ROLLED
      for (int x = y < kWindow ? kWindow : 0; x < wide; ++x) {
        store_pack(corner + x * shape.channels, Pack<T, kWidth>{});
      }
    }
  }
};

// For windows that touch: a row is a window.
template <typename T, int kWindow>
struct MaxPoolScatter {
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
    const std::int64_t from = row * shape.channels + column;
    PoolingCell<T, kWindow>::write(shape, row, column, load_pack<kWidth>(dy + from),
                                   load_pack<kWidth>(argmax + from), dx);
  }
};

// For any windows. Gathers: each input pixel reads the windows over it, in the order of the output. No two threads
// write to the same place.
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
    const Pixel in = shape.in.pixel(row);
    const int in_y = in.y + shape.pad, in_x = in.x + shape.pad;
    const Windows lines = covering(in_y, shape.window, shape.by_stride, shape.out.height);
    const Windows rows = covering(in_x, shape.window, shape.by_stride, shape.out.width);
    const std::int64_t out_image = in.image * shape.out.height * shape.out.width;
    float sum[kWidth] = {};
    HEADRACE_ROLLED
    for (int oy = lines.first; oy <= lines.last; ++oy) {
      HEADRACE_ROLLED
      for (int ox = rows.first; ox <= rows.last; ++ox) {
        const int place = (in_y - oy * shape.stride) * shape.window + (in_x - ox * shape.stride);
        const std::int64_t from = (out_image + oy * shape.out.width + ox) * shape.channels + column;
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
  return {.in = {x.shape[1], x.shape[2]},
          .out = {y.shape[1], y.shape[2]},
          .channels = static_cast<int>(x.shape[3]),
          .window = options.window,
          .stride = options.stride,
          .pad = options.pad,
          .by_stride = Divisor(options.stride)};
}

template <typename Launcher>
void submit_max_pool_forward(Launcher& launch, const kernel::MaxPoolForward& of) {
  by_type(of.x.dtype, [&]<typename T>(T) {
    by_window(of.options.window, [&](auto window) {
      const std::int64_t channels = of.y.shape[3], pixels = of.y.elements() / channels;
      const PoolShape shape = pool_shape(of.x, of.y, of.options);
      const auto run = [&](const auto& work) {
        submit_columns<kPackWidth<T>>(launch, work, pixels, channels, of.x, of.y, of.argmax);
      };
      const auto* x = of.x.as<const T>();
      auto* y = of.y.as<T>();
      auto* argmax = of.argmax.as<std::uint8_t>();
      if (of.options.pad > 0) return run(PaddedMaxPoolForward<T, window()>{shape, x, y, argmax});
      run(MaxPoolForward<T, window()>{shape, x, y, argmax});
    });
  });
}

template <typename Launcher>
void submit_max_pool_backward(Launcher& launch, const kernel::MaxPoolBackward& of) {
  by_type(of.dy.dtype, [&]<typename T>(T) {
    by_touching_window(of.options, [&](auto window) {
      using Work = std::conditional_t<(window() > 0), MaxPoolScatter<T, window()>, MaxPoolBackward<T>>;
      const std::int64_t channels = of.dx.shape[3];
      const TensorView& pixels = window() > 0 ? of.dy : of.dx;
      const Work work{pool_shape(of.dx, of.dy, of.options), of.dy.as<T>(), of.argmax.as<std::uint8_t>(),
                      of.dx.as<T>()};
      submit_columns<kPackWidth<T>>(launch, work, pixels.elements() / channels, channels, of.dy, of.dx, of.argmax);
    });
  });
}

}  // namespace headrace::cuda
