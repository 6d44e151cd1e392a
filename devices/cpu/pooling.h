// Pooling over channels-last images. Private to the CPU backend.
#pragma once

#include <cstdint>

namespace headrace::cpu {

// A window without padding over (images, height, width, channels); window^2 <= 256.
struct PoolGeometry {
  std::int64_t images = 0, height = 0, width = 0, channels = 0;
  std::int64_t window = 0, stride = 0;

  std::int64_t out_height() const noexcept { return (height - window) / stride + 1; }
  std::int64_t out_width() const noexcept { return (width - window) / stride + 1; }
};

void max_pool_forward(const PoolGeometry& geometry, const float* x, float* y, std::uint8_t* argmax);
void max_pool_backward(const PoolGeometry& geometry, const float* dy, const std::uint8_t* argmax, float* dx);

// x (images, pixels, channels), y (images, channels).
void global_average_forward(const float* x, float* y, std::int64_t images, std::int64_t pixels,
                            std::int64_t channels);
void global_average_backward(const float* dy, float* dx, std::int64_t images, std::int64_t pixels,
                             std::int64_t channels);

}  // namespace headrace::cpu
