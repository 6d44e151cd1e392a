// A Gaussian blur of u8 images in the 16-bit fixed point of resample_kernels.h: down the columns, then along the
// rows, reflected at the borders. Within one level of exact arithmetic, the same bits on every processor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "headrace/pipeline/operations/kernels/level_kernels.h"
#include "headrace/pipeline/operations/kernels/resample_kernels.h"

namespace headrace {

// Taps of a blur at most: the rounding of as many products stays below half a level.
inline constexpr int kMaxBlurTaps = 127;

struct BlurWeights {
  std::array<FixedWeight, kMaxBlurTaps> values{};  // the first `taps`, whose sum is kWholeWeight
  std::int64_t taps = 1;
};

// Returns the weights of a normal distribution with this deviation at `taps` pixels around its middle. REQUIRES:
// an odd number, at most kMaxBlurTaps; sigma > 0.
BlurWeights gaussian_weights(int taps, double sigma);

// Returns the bytes of working memory that blur() needs.
std::size_t blur_bytes(const LevelWork& work, std::int64_t taps);
// REQUIRES: height and width are above taps / 2; `memory` has blur_bytes(), aligned for FixedLevel.
void blur(const LevelWork& work, const BlurWeights& weights, std::span<std::byte> memory);

}  // namespace headrace
