// u8 pixels to floats, and mirrored, on processors with AVX2.
#pragma once

#include <cstdint>

#include "headrace/pipeline/operations/kernels/rgb_kernels.h"

namespace headrace {

// Implement RgbKernels.
void to_planes_avx2(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                    float* to);
void to_pixels_avx2(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                    float* to);
void mirror_avx2(const RgbImage& image, std::uint8_t* to);

}  // namespace headrace
