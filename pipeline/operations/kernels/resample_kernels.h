// The two passes of a resize in 16-bit fixed point (devices/input_kernels.h). Every variant gives the same bits: a
// product is rounded once, and sums of non-negative terms do not depend on their order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "headrace/devices/input_kernels.h"

namespace headrace {

constexpr std::int32_t kWholeWeight = 32767;

// Elements that the kernels may read past the end of a FixedLevel row, and bytes they may write past a u8 row.
constexpr std::int64_t kRowSlack = 64;

// The pixels of a row for blend_pixels(), laid out by the plan_pixels() of the same kernels.
struct PixelPlan {
  std::int64_t taps = 0;
  std::int64_t group = 0;             // pixels of a vector
  std::vector<std::int32_t> first;    // input pixel of each pixel, or of each group
  std::vector<std::uint16_t> places;  // of groups: where each lane begins, in elements from there
  std::vector<FixedWeight> weights;   // by group, tap and lane
};

struct ResampleKernels {
  // row[i] = sum over taps of weights[k] * from[k * stride + i], i in [0, count).
  void (*blend_rows)(const std::uint8_t* from, std::int64_t stride, const FixedWeight* weights, std::int64_t taps,
                     FixedLevel* row, std::int64_t count);
  // Plans pixels of three channels: to[x] = sum over taps of weights[x * taps + k] * row[first[x] + k], rounded to
  // levels.
  void (*plan_pixels)(std::span<const std::int32_t> first, std::span<const FixedWeight> weights, PixelPlan& plan);
  void (*blend_pixels)(const FixedLevel* row, const PixelPlan& plan, std::uint8_t* to, std::int64_t pixels);
};

// Returns the best kernels for this processor.
const ResampleKernels& resample_kernels() noexcept;
// Returns the portable kernels: the oracle of the others.
const ResampleKernels& portable_resample_kernels() noexcept;

}  // namespace headrace
