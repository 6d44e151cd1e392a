// Images, operations on them that devices can do, and devices that do them.
#pragma once

#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {

inline const std::vector<float> kMean{0.5F, 0.4F, 0.3F};
inline const std::vector<float> kStd{0.2F, 0.3F, 0.4F};

inline Dataset images_with(const Operations& operations, std::int64_t global = 48) {
  return Dataset::from(noise_images(211, 9, 12))
      .shuffle({.seed = 7})
      .map(operations)
      .batch({.global_batch = global});
}

// Ways to run a loader in which every pair of two values occurs.
struct RunShape {
  int replicas = 1;
  int threads = 1;
  int prefetch = 0;
};
inline constexpr RunShape kRunShapes[] = {{1, 1, 0}, {1, 4, 3}, {2, 1, 3}, {2, 4, 0}, {3, 1, 0}, {3, 4, 3}};

// Chains whose end, or whole, a device can do.
inline std::vector<Operations> convertible() {
  const Operations to_float = normalize(kMean, kStd);
  const Operations planes = to_layout(ImageLayout::kChannelsFirst);
  return {
      to_float,
      cast(DType::kF32),
      cast(DType::kF32) | normalize({10.0F}, {3.0F}),
      to_float | planes,
      planes | to_float,
      to_float | flatten(),
      flatten() | normalize({0.5F}, {0.25F}),
      flip() | to_float,
      to_float | flip() | planes,
      center_crop(8) | flip() | center_crop(5) | to_float,
      pad_crop(8, 2) | flip() | to_float,
      pad_crop(9, 4, Padding::kReflect) | flip(0.3F) | flip(0.6F) | to_float | planes,
      pad_crop(12, 3) | center_crop(8) | to_float,
      cutout(3) | flip() | to_float,
      pad_crop(8, 2) | flip() | to_float | brightness_contrast({.brightness = 0.3F, .contrast = 0.2F}) | planes,
      to_float | brightness_contrast({.contrast = 0.5F}) | flip() | center_crop(7) | flatten(),
      color_jitter({.brightness = 0.4F}) | flip() | to_float,
      random_resized_crop({.size = 8}) | flip() | to_float,
      vertical_flip() | random_rotation({.interpolation = Interpolation::kBilinear}) | flip() | to_float | planes,
      random_erasing() | flip() | to_float,
      to_float | cast(DType::kU8) | flip() | cast(DType::kF32)};
}

}  // namespace headrace::test
