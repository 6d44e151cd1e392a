#include "headrace/pipeline/operations/kernels/blur_kernels.h"

#include <algorithm>

#include "headrace/devices/base/simd.h"
#include "headrace/pipeline/operations/kernels/portable_math.h"

namespace headrace {
namespace {

// Elements that are summed at a time.
constexpr std::int64_t kBlurTile = 64;

[[gnu::always_inline]] inline FixedLevel weighted(FixedLevel level, FixedWeight weight) {
  return static_cast<FixedLevel>((std::int32_t{level} * std::int32_t{weight} + (1 << 14)) >> 15);
}

// to[i] = the sum over taps of weights[k] * rows[k][i], i in [at, at + count).
[[gnu::always_inline]] inline void sum_down(const std::uint8_t* const* rows, const BlurWeights& weights,
                                            std::int64_t at, std::int64_t count, FixedLevel* to) {
  FixedLevel sums[kBlurTile] = {};
  for (std::int64_t k = 0; k < weights.taps; ++k) {
    const std::uint8_t* const row = rows[k] + at;
    const FixedWeight weight = weights.values[static_cast<std::size_t>(k)];
    for (std::int64_t i = 0; i < count; ++i) {
      const auto level = static_cast<FixedLevel>(row[i] << kLevelBits);
      sums[i] = static_cast<FixedLevel>(sums[i] + weighted(level, weight));
    }
  }
  for (std::int64_t i = 0; i < count; ++i) to[at + i] = sums[i];
}

// to[i] = the sum over taps of weights[k] * row[i + k * channels], i in [at, at + count), as a level.
[[gnu::always_inline]] inline void sum_across(const FixedLevel* row, std::int64_t channels,
                                              const BlurWeights& weights, std::int64_t at, std::int64_t count,
                                              std::uint8_t* to) {
  FixedLevel sums[kBlurTile] = {};
  for (std::int64_t k = 0; k < weights.taps; ++k) {
    const FixedLevel* const from = row + at + k * channels;
    const FixedWeight weight = weights.values[static_cast<std::size_t>(k)];
    for (std::int64_t i = 0; i < count; ++i)
      sums[i] = static_cast<FixedLevel>(sums[i] + weighted(from[i], weight));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    to[at + i] = static_cast<std::uint8_t>((std::int32_t{sums[i]} + (1 << (kLevelBits - 1))) >> kLevelBits);
  }
}

// The last tile overlaps its neighbour; a row shorter than a tile is summed as it is.
HEADRACE_SIMD void blur_down(const std::uint8_t* const* rows, const BlurWeights& weights, std::int64_t count,
                             FixedLevel* to) {
  if (count < kBlurTile) return sum_down(rows, weights, 0, count, to);
  for (std::int64_t at = 0; at < count; at += kBlurTile) {
    sum_down(rows, weights, std::min(at, count - kBlurTile), kBlurTile, to);
  }
}

HEADRACE_SIMD void blur_across(const FixedLevel* row, std::int64_t channels, const BlurWeights& weights,
                               std::int64_t count, std::uint8_t* to) {
  if (count < kBlurTile) return sum_across(row, channels, weights, 0, count, to);
  for (std::int64_t at = 0; at < count; at += kBlurTile) {
    sum_across(row, channels, weights, std::min(at, count - kBlurTile), kBlurTile, to);
  }
}

// Fills `pixels` pixels on both sides of a row by reflecting it at its first and last pixel.
void reflect_ends(FixedLevel* inside, std::int64_t width, std::int64_t channels, std::int64_t pixels) {
  for (std::int64_t i = 1; i <= pixels; ++i) {
    std::copy_n(inside + i * channels, channels, inside - i * channels);
    std::copy_n(inside + (width - 1 - i) * channels, channels, inside + (width - 1 + i) * channels);
  }
}

std::int64_t reflected_row(std::int64_t row, std::int64_t height) {
  if (row < 0) return -row;
  return row < height ? row : 2 * (height - 1) - row;
}

}  // namespace

BlurWeights gaussian_weights(int taps, double sigma) {
  std::array<double, kMaxBlurTaps> shares{};
  BlurWeights weights{.taps = taps};
  const int middle = taps / 2;
  double sum = 0;
  for (int k = 0; k < taps; ++k) {
    const double apart = (k - middle) / sigma;
    sum += shares[static_cast<std::size_t>(k)] = exponential(-0.5 * apart * apart);
  }
  std::int32_t left = kWholeWeight;
  for (std::size_t k = 0; k < static_cast<std::size_t>(taps); ++k) {
    weights.values[k] = static_cast<FixedWeight>(shares[k] / sum * kWholeWeight + 0.5);
    left -= weights.values[k];
  }
  FixedWeight& most = weights.values[static_cast<std::size_t>(middle)];
  most = static_cast<FixedWeight>(most + left);
  return weights;
}

std::size_t blur_bytes(const LevelWork& work, std::int64_t taps) {
  return static_cast<std::size_t>((work.width + taps - 1) * work.channels) * sizeof(FixedLevel);
}

void blur(const LevelWork& work, const BlurWeights& weights, std::span<std::byte> memory) {
  const std::int64_t around = weights.taps / 2, count = work.width * work.channels;
  auto* const row = reinterpret_cast<FixedLevel*>(memory.data());
  FixedLevel* const inside = row + around * work.channels;
  std::array<const std::uint8_t*, kMaxBlurTaps> rows{};
  for (std::int64_t y = 0; y < work.height; ++y) {
    for (std::int64_t k = 0; k < weights.taps; ++k) {
      rows[static_cast<std::size_t>(k)] = work.from + reflected_row(y + k - around, work.height) * count;
    }
    blur_down(rows.data(), weights, count, inside);
    reflect_ends(inside, work.width, work.channels, around);
    blur_across(row, work.channels, weights, count, work.to + y * count);
  }
}

}  // namespace headrace
