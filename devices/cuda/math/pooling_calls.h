// Pooling of GpuKernels. Private to the CUDA backend.
#pragma once

#include "headrace/devices/cuda/math/elementwise_work.h"
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

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::MaxPoolForward& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) { submit_max_pool_forward(launch, of); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::MaxPoolBackward& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) { submit_max_pool_backward(launch, of); });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::AveragePoolForward& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    by_type(of.x.dtype, [&]<typename T>(T) {
      by_window(of.options.window, [&](auto window) {
        const std::int64_t channels = of.y.shape[3];
        const AveragePoolForward<T, window()> work{pool_shape(of.x, of.y, of.options), of.x.as<T>(), of.y.as<T>()};
        submit_columns<kPackWidth<T>>(launch, work, of.y.elements() / channels, channels, of.x, of.y);
      });
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::AveragePoolBackward& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    by_type(of.dy.dtype, [&]<typename T>(T) {
      const std::int64_t channels = of.dx.shape[3];
      const AveragePoolBackward<T> work{pool_shape(of.dx, of.dy, of.options), of.dy.as<T>(), of.dx.as<T>()};
      submit_columns<kPackWidth<T>>(launch, work, of.dx.elements() / channels, channels, of.dy, of.dx);
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::CopyColumns& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    by_type(of.from.dtype, [&]<typename T>(T) {
      const std::int64_t from = of.from.shape[1], to = of.to.shape[1];
      const CopyColumns<T> work{of.from.as<T>() + of.from_column, of.to.as<T>() + of.to_column, from, to};
      constexpr int kWidth = kPackWidth<T>;
      const bool even =
          from % kWidth == 0 && to % kWidth == 0 && of.from_column % kWidth == 0 && of.to_column % kWidth == 0;
      if (even) return submit_columns<kWidth>(launch, work, of.from.shape[0], of.columns, of.from, of.to);
      submit_columns<1>(launch, work, of.from.shape[0], of.columns);
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::GlobalAveragePoolForward& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    by_type(of.x.dtype, [&]<typename T>(T) {
      const std::int64_t channels = of.y.shape[1];
      const GlobalAverageForward<T> work{of.x.as<T>(), of.y.as<T>(), of.x.shape[1] * of.x.shape[2], channels};
      submit_columns<kPackWidth<T>>(launch, work, of.y.shape[0], channels, of.x, of.y);
    });
  });
}

template <typename Launches>
void GpuKernels<Launches>::run(Stream& stream, const kernel::GlobalAveragePoolBackward& of) {
  launches_.submit(stream, name_of(of), [=](auto& launch) {
    by_type(of.dy.dtype, [&]<typename T>(T) {
      const std::int64_t channels = of.dy.shape[1], pixels = of.dx.shape[1] * of.dx.shape[2];
      const GlobalAverageBackward<T> work{of.dy.as<T>(), of.dx.as<T>(), pixels, channels, Divisor(pixels)};
      submit_columns<kPackWidth<T>>(launch, work, of.dx.elements() / channels, channels, of.dy, of.dx);
    });
  });
}

}  // namespace headrace::cuda
