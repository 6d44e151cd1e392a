// Pooling over channels-last images. Private to the CPU backend.
#pragma once

#include <cstdint>

namespace headrace::cpu {

// A window over (images, height, width, channels); window^2 <= 256, pad <= window / 2.
struct PoolGeometry {
  std::int64_t images = 0, height = 0, width = 0, channels = 0;
  std::int64_t window = 0, stride = 0;
  std::int64_t pad = 0;  // max pooling only

  std::int64_t out_height() const noexcept { return (height + 2 * pad - window) / stride + 1; }
  std::int64_t out_width() const noexcept { return (width + 2 * pad - window) / stride + 1; }
};

// T is float or BFloat16.
template <typename T>
void max_pool_forward(const PoolGeometry& geometry, const T* x, T* y, std::uint8_t* argmax);
template <typename T>
void max_pool_backward(const PoolGeometry& geometry, const T* dy, const std::uint8_t* argmax, T* dx);

// x (images, pixels, channels), y (images, channels).
template <typename T>
void global_average_forward(const T* x, T* y, std::int64_t images, std::int64_t pixels, std::int64_t channels);
template <typename T>
void global_average_backward(const T* dy, T* dx, std::int64_t images, std::int64_t pixels, std::int64_t channels);

// T is float or BFloat16.
template <typename T>
void average_pool_forward(const PoolGeometry& geometry, const T* x, T* y);
template <typename T>
void average_pool_backward(const PoolGeometry& geometry, const T* dy, T* dx);

}  // namespace headrace::cpu
