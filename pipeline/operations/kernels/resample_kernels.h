// The two passes of a resize in 16-bit fixed point. Every variant gives the same bits: a product is rounded once,
// (a * b + 2^14) >> 15, and sums of non-negative terms do not depend on their order.
#pragma once

#include <cstdint>
#include <vector>

namespace headrace {

// Pixels between the passes: levels times 2^7. Weights: shares times 2^15, at most 2^15 - 1.
using FixedLevel = std::int16_t;
using FixedWeight = std::int16_t;
constexpr int kLevelBits = 7;
constexpr std::int32_t kWholeWeight = 32767;

// Elements that the kernels may read past the end of a FixedLevel row, and bytes they may write past a u8 row.
constexpr std::int64_t kRowSlack = 16;

struct ResampleKernels {
  // row[i] = sum over taps of weights[k] * from[k * stride + i], i in [0, count).
  void (*blend_rows)(const std::uint8_t* from, std::int64_t stride, const FixedWeight* weights, std::int64_t taps,
                     FixedLevel* row, std::int64_t count);
  // Pixels of three channels: to[x] = sum over taps of weights[x * taps + k] * row[first[x] + k], rounded to
  // levels. `paired` are the weights as pair_weights() lays them out.
  void (*blend_pixels)(const FixedLevel* row, const std::int32_t* first, const FixedWeight* paired,
                       std::int64_t taps, std::uint8_t* to, std::int64_t pixels);
};

// Returns the best kernels for this processor.
const ResampleKernels& resample_kernels() noexcept;
// Returns the portable kernels: the oracle of the others.
const ResampleKernels& portable_resample_kernels() noexcept;

// Lays out, for pixels 2 p and 2 p + 1 and each tap k, the 8 numbers w, w, w, w, v, v, v, v at 8 (p * taps + k):
// one vector. v is 0 if there is no second pixel.
void pair_weights(const std::vector<FixedWeight>& weights, std::int64_t taps, std::vector<FixedWeight>& paired);

// Returns one product, computed as in all variants.
constexpr std::int32_t fixed_product(std::int32_t level, std::int32_t weight) noexcept {
  return (level * weight + (1 << 14)) >> 15;
}
// Returns a sum of products as a level of 0 to 255.
constexpr std::uint8_t to_level(std::int32_t sum) noexcept {
  const std::int32_t level = (sum + (1 << (kLevelBits - 1))) >> kLevelBits;
  return static_cast<std::uint8_t>(level > 255 ? 255 : level);
}

}  // namespace headrace
