// Shifted and mirrored copies of images. Private to the CPU backend.
#pragma once

#include <cstdint>

#include "headrace/devices/kernels.h"

namespace headrace::cpu {

struct ImageGeometry {
  std::int64_t images = 0, height = 0, width = 0, channels = 0;
};

// T is float or BFloat16.
template <typename T>
void shift_images(const ImageGeometry& geometry, const T* x, const ImageShift& shift, T* y);

}  // namespace headrace::cpu
