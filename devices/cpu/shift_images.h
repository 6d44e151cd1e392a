// Shifted and mirrored copies of images. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/kernels.h"

namespace headrace::cpu {

struct ImageGeometry {
  std::int64_t images = 0, height = 0, width = 0, channels = 0;
};

void shift_images(const ImageGeometry& geometry, const float* x, const ImageShift& shift, float* y);

}  // namespace headrace::cpu
