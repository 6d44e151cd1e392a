// u8 pixels to planes of floats on processors with AVX-512's byte permutations (Ice Lake, Zen 4 and later).
#pragma once

#include <cstdint>

#include "headrace/pipeline/operations/kernels/rgb_kernels.h"

namespace headrace {

bool can_permute_bytes() noexcept;

// Implements RgbKernels::to_planes. REQUIRES: the image's width is a multiple of kPermutedPixels.
void to_planes_vbmi(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                    float* to);
inline constexpr std::int64_t kPermutedPixels = 32;

}  // namespace headrace
