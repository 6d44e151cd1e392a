// The variants of the RGB kernels for x86-64. Each may be called on processors that have its instructions.
#pragma once

#include <cstdint>

#include "headrace/pipeline/operations/kernels/rgb_kernels.h"

namespace headrace {

// Implement RgbKernels with AVX2.
void to_planes_avx2(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                    float* to);
void to_pixels_avx2(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                    float* to);
void mirror_avx2(const RgbImage& image, std::uint8_t* to);

// Implements RgbKernels::to_planes with AVX-512.
void to_planes_avx512(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                      float* to);

// Implements RgbKernels::to_planes with AVX-512's byte permutations (Ice Lake, Zen 4 and later), which
// can_permute_bytes() looks for. REQUIRES: the image's width is a multiple of kPermutedPixels.
bool can_permute_bytes() noexcept;
void to_planes_vbmi(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                    float* to);
inline constexpr std::int64_t kPermutedPixels = 32;

}  // namespace headrace
