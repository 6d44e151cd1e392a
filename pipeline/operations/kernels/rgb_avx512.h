// u8 pixels to planes of floats on processors with AVX-512.
#pragma once

#include "headrace/pipeline/operations/kernels/rgb_kernels.h"

namespace headrace {

// Implements RgbKernels::to_planes.
void to_planes_avx512(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                      float* to);

}  // namespace headrace
