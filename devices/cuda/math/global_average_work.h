// The mean over an image as work for threads. Private to the CUDA backend.
#pragma once

#include "headrace/devices/cuda/math/pooling_work.h"

namespace headrace::cuda {

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

}  // namespace headrace::cuda
