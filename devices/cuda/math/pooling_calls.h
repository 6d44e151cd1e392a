// Pooling of GpuKernels. Private to the CUDA backend.
#pragma once

#include "headrace/devices/common/kernel_checks.h"
#include "headrace/devices/cuda/math/gpu_kernels.h"
#include "headrace/devices/cuda/math/pooling_work.h"

namespace headrace::cuda {

// Parts of matrices' rows, and pooling by the mean, as work for threads.
template <typename T>
struct CopyColumns {
  const T* from;  // of the first column
  T* to;
  std::int64_t from_width, to_width;

  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(Nothing, std::int64_t row, std::int64_t column) const {
    store_pack(to + row * to_width + column, load_pack<kWidth>(from + row * from_width + column));
  }
};

template <typename T, int kWindow>
struct AveragePoolForward {
  PoolShape shape;
  const T* x;
  T* y;

  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(Nothing, std::int64_t row, std::int64_t column) const {
    const Pixel out = shape.out.pixel(row);
    const int place = (out.y * shape.in.width + out.x) * shape.stride * shape.channels;
    const T* corner = x + out.image * shape.in_image() + place + column;
    float sum[kWidth] = {};
    const int window = window_of<kWindow>(shape);
    HEADRACE_UNROLLED(unrolled(kWindow))
    for (int dy = 0; dy < window; ++dy) {
      HEADRACE_UNROLLED(unrolled(kWindow))
      for (int dx = 0; dx < window; ++dx) {
        const Pack<T, kWidth> pack = load_pack<kWidth>(corner + (dy * shape.in.width + dx) * shape.channels);
        for (int k = 0; k < kWidth; ++k) sum[k] += value_of(pack.values[k]);
      }
    }
    const float share = 1.0F / static_cast<float>(window * window);
    Pack<T, kWidth> pack;
    for (int k = 0; k < kWidth; ++k) pack.values[k] = element_of<T>(sum[k] * share);
    store_pack(y + row * shape.channels + column, pack);
  }
};

// Gathers, like MaxPoolBackward.
template <typename T>
struct AveragePoolBackward {
  PoolShape shape;
  const T* dy;
  T* dx;

  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(Nothing, std::int64_t row, std::int64_t column) const {
    const Pixel in = shape.in.pixel(row);
    const Windows lines = covering(in.y, shape.window, shape.by_stride, shape.out.height);
    const Windows rows = covering(in.x, shape.window, shape.by_stride, shape.out.width);
    const std::int64_t out_image = in.image * shape.out.height * shape.out.width;
    float sum[kWidth] = {};
    HEADRACE_ROLLED
    for (int oy = lines.first; oy <= lines.last; ++oy) {
      HEADRACE_ROLLED
      for (int ox = rows.first; ox <= rows.last; ++ox) {
        const std::int64_t from = (out_image + oy * shape.out.width + ox) * shape.channels + column;
        const Pack<T, kWidth> gradient = load_pack<kWidth>(dy + from);
        for (int k = 0; k < kWidth; ++k) sum[k] += value_of(gradient.values[k]);
      }
    }
    const float share = 1.0F / static_cast<float>(shape.window * shape.window);
    Pack<T, kWidth> pack;
    for (int k = 0; k < kWidth; ++k) pack.values[k] = element_of<T>(sum[k] * share);
    store_pack(dx + row * shape.channels + column, pack);
  }
};

template <typename Launcher>
void submit_copy_columns(Launcher& launch, const TensorView& from, std::int64_t from_column, const TensorView& to,
                         std::int64_t to_column, std::int64_t columns) {
  by_type(from.dtype, [&](auto type) {
    using T = decltype(type);
    const CopyColumns<T> work{from.as<T>() + from_column, to.as<T>() + to_column, from.shape[1], to.shape[1]};
    constexpr int kWidth = kPackWidth<T>;
    const bool even = columns % kWidth == 0 && from.shape[1] % kWidth == 0 && to.shape[1] % kWidth == 0 &&
                      from_column % kWidth == 0 && to_column % kWidth == 0;
    by_width<kWidth>(even && packs_fit(kWidth, from, to), [&](auto width) {
      launch.template columns<width()>(work, column_grid(from.shape[0], columns, width()));
    });
  });
}

template <typename Launcher>
void submit_average_pool_forward(Launcher& launch, const TensorView& x, const TensorView& y,
                                 const PoolOptions& options) {
  by_type(x.dtype, [&](auto type) {
    by_window(options.window, [&](auto window) {
      using T = decltype(type);
      const std::int64_t channels = y.shape[3];
      const AveragePoolForward<T, window()> work{pool_shape(x, y, options), x.as<T>(), y.as<T>()};
      constexpr int kWidth = kPackWidth<T>;
      by_width<kWidth>(channels % kWidth == 0 && packs_fit(kWidth, x, y), [&](auto width) {
        launch.template columns<width()>(work, column_grid(y.elements() / channels, channels, width()));
      });
    });
  });
}

template <typename Launcher>
void submit_average_pool_backward(Launcher& launch, const TensorView& dy, const TensorView& dx,
                                  const PoolOptions& options) {
  by_type(dy.dtype, [&](auto type) {
    using T = decltype(type);
    const std::int64_t channels = dx.shape[3];
    const AveragePoolBackward<T> work{pool_shape(dx, dy, options), dy.as<T>(), dx.as<T>()};
    constexpr int kWidth = kPackWidth<T>;
    by_width<kWidth>(channels % kWidth == 0 && packs_fit(kWidth, dy, dx), [&](auto width) {
      launch.template columns<width()>(work, column_grid(dx.elements() / channels, channels, width()));
    });
  });
}

// A row is an image. Blocks of kBlock pixels are added in f32, blocks in f64.
template <typename T>
struct GlobalAverageForward {
  static constexpr int kResidentBlocks = 4;

  const T* x;
  T* y;
  std::int64_t pixels, channels;

  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(Nothing, std::int64_t image, std::int64_t column) const {
    constexpr std::int64_t kBlock = 64;
    const T* from = x + image * pixels * channels + column;
    double total[kWidth] = {};
    for (std::int64_t begin = 0; begin < pixels; begin += kBlock) {
      const std::int64_t end = begin + kBlock < pixels ? begin + kBlock : pixels;
      float sum[kWidth] = {};
      for (std::int64_t pixel = begin; pixel < end; ++pixel) {
        const Pack<T, kWidth> pack = load_pack<kWidth>(from + pixel * channels);
        for (int k = 0; k < kWidth; ++k) sum[k] += value_of(pack.values[k]);
      }
      for (int k = 0; k < kWidth; ++k) total[k] += static_cast<double>(sum[k]);
    }
    Pack<T, kWidth> pack;
    for (int k = 0; k < kWidth; ++k) {
      pack.values[k] = element_of<T>(static_cast<float>(total[k] / static_cast<double>(pixels)));
    }
    store_pack(y + image * channels + column, pack);
  }
};

// A row is a pixel of the input.
template <typename T>
struct GlobalAverageBackward {
  const T* dy;
  T* dx;
  std::int64_t pixels, channels;
  Divisor by_pixels;

  template <int kWidth>
  HEADRACE_HOST_DEVICE Nothing begin(std::int64_t) const {
    return {};
  }
  template <int kWidth>
  HEADRACE_HOST_DEVICE void run(Nothing, std::int64_t row, std::int64_t column) const {
    const float share = 1.0F / static_cast<float>(pixels);
    Pack<T, kWidth> pack = load_pack<kWidth>(dy + by_pixels.quotient(row) * channels + column);
    for (T& element : pack.values) element = element_of<T>(value_of(element) * share);
    store_pack(dx + row * channels + column, pack);
  }
};

template <typename Launcher>
void submit_global_average_forward(Launcher& launch, const TensorView& x, const TensorView& y) {
  by_type(x.dtype, [&](auto type) {
    using T = decltype(type);
    const std::int64_t channels = y.shape[1];
    const GlobalAverageForward<T> work{x.as<T>(), y.as<T>(), x.shape[1] * x.shape[2], channels};
    constexpr int kWidth = kPackWidth<T>;
    by_width<kWidth>(channels % kWidth == 0 && packs_fit(kWidth, x, y), [&](auto width) {
      launch.template columns<width()>(work, column_grid(y.shape[0], channels, width()));
    });
  });
}

template <typename Launcher>
void submit_global_average_backward(Launcher& launch, const TensorView& dy, const TensorView& dx) {
  by_type(dy.dtype, [&](auto type) {
    using T = decltype(type);
    const std::int64_t channels = dy.shape[1];
    const std::int64_t pixels = dx.shape[1] * dx.shape[2];
    const GlobalAverageBackward<T> work{dy.as<T>(), dx.as<T>(), pixels, channels, Divisor(pixels)};
    constexpr int kWidth = kPackWidth<T>;
    by_width<kWidth>(channels % kWidth == 0 && packs_fit(kWidth, dy, dx), [&](auto width) {
      launch.template columns<width()>(work, column_grid(dx.elements() / channels, channels, width()));
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::max_pool_forward(Stream& stream, const TensorView& x, const TensorView& y,
                                            const TensorView& argmax, const PoolOptions& options) {
  check::max_pool("max_pool_forward", x, y, argmax, options, kHalf);
  launches_.submit(stream, "max_pool_forward",
                   [=](auto& launch) { submit_max_pool_forward(launch, x, y, argmax, options); });
}

template <typename Launches>
void GpuKernels<Launches>::max_pool_backward(Stream& stream, const TensorView& dy, const TensorView& argmax,
                                             const TensorView& dx, const PoolOptions& options) {
  check::max_pool("max_pool_backward", dx, dy, argmax, options, kHalf);
  launches_.submit(stream, "max_pool_backward",
                   [=](auto& launch) { submit_max_pool_backward(launch, dy, argmax, dx, options); });
}

template <typename Launches>
void GpuKernels<Launches>::average_pool_forward(Stream& stream, const TensorView& x, const TensorView& y,
                                                const PoolOptions& options) {
  check::average_pool("average_pool_forward", x, y, options, kHalf);
  launches_.submit(stream, "average_pool_forward",
                   [=](auto& launch) { submit_average_pool_forward(launch, x, y, options); });
}

template <typename Launches>
void GpuKernels<Launches>::average_pool_backward(Stream& stream, const TensorView& dy, const TensorView& dx,
                                                 const PoolOptions& options) {
  check::average_pool("average_pool_backward", dx, dy, options, kHalf);
  launches_.submit(stream, "average_pool_backward",
                   [=](auto& launch) { submit_average_pool_backward(launch, dy, dx, options); });
}

template <typename Launches>
void GpuKernels<Launches>::copy_columns(Stream& stream, const TensorView& from, std::int64_t from_column,
                                        const TensorView& to, std::int64_t to_column, std::int64_t columns) {
  check::columns("copy_columns", from, from_column, to, to_column, columns, kHalf);
  launches_.submit(stream, "copy_columns",
                   [=](auto& launch) { submit_copy_columns(launch, from, from_column, to, to_column, columns); });
}

template <typename Launches>
void GpuKernels<Launches>::global_average_pool_forward(Stream& stream, const TensorView& x, const TensorView& y) {
  check::global_pool("global_average_pool_forward", x, y, kHalf);
  launches_.submit(stream, "global_average_pool_forward",
                   [=](auto& launch) { submit_global_average_forward(launch, x, y); });
}

template <typename Launches>
void GpuKernels<Launches>::global_average_pool_backward(Stream& stream, const TensorView& dy,
                                                        const TensorView& dx) {
  check::global_pool("global_average_pool_backward", dx, dy, kHalf);
  launches_.submit(stream, "global_average_pool_backward",
                   [=](auto& launch) { submit_global_average_backward(launch, dy, dx); });
}

}  // namespace headrace::cuda
