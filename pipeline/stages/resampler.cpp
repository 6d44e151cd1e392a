#include "headrace/pipeline/stages/resampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "headrace/pipeline/stages/simd.h"

namespace headrace {
namespace {

constexpr std::int64_t kBlock = 64;
constexpr std::int64_t kSlack = 16;  // floats that vector loads and stores may pass the end of a row by

typedef float Float4 __attribute__((vector_size(16)));

// row[i] = sum over taps of weights[k] * from[k * stride + i]
HEADRACE_SIMD void blend_rows(const std::uint8_t* from, std::int64_t stride, const float* weights, std::int64_t taps,
                              float* row, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    float sums[kBlock] = {};
    for (std::int64_t k = 0; k < taps; ++k) {
      const std::uint8_t* source = from + k * stride + i;
      const float weight = weights[k];
      for (std::int64_t j = 0; j < kBlock; ++j) sums[j] += weight * static_cast<float>(source[j]);
    }
    std::memcpy(row + i, sums, sizeof sums);
  }
  for (; i < count; ++i) {
    float sum = 0;
    for (std::int64_t k = 0; k < taps; ++k) sum += weights[k] * static_cast<float>(from[k * stride + i]);
    row[i] = sum;
  }
}

// Three channels: an output pixel is a vector of (r, g, b, don't care).
HEADRACE_SIMD void blend_pixels(const float* row, const std::int32_t* first, const float* weights, std::int64_t taps,
                                float* result, std::int64_t count) {
  for (std::int64_t x = 0; x < count; ++x) {
    const float* source = row + 3 * first[x];
    Float4 sum{};
    for (std::int64_t k = 0; k < taps; ++k) {
      Float4 pixel;
      std::memcpy(&pixel, source + 3 * k, sizeof pixel);
      sum += weights[x * taps + k] * pixel;
    }
    std::memcpy(result + 3 * x, &sum, sizeof sum);
  }
}

void blend_any(const float* row, const ResampleAxis& axis, float* result, std::int64_t channels) {
  const auto count = static_cast<std::int64_t>(axis.first.size());
  for (std::int64_t x = 0; x < count; ++x) {
    const float* weights = axis.weights.data() + x * axis.taps;
    for (std::int64_t c = 0; c < channels; ++c) {
      float sum = 0;
      for (std::int64_t k = 0; k < axis.taps; ++k) {
        sum += weights[k] * row[(axis.first[static_cast<std::size_t>(x)] + k) * channels + c];
      }
      result[x * channels + c] = sum;
    }
  }
}

HEADRACE_SIMD void round_to_u8(const float* from, std::uint8_t* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float value = std::min(std::max(from[i] + 0.5F, 0.0F), 255.0F);
    to[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(value));
  }
}

}  // namespace

void ResampleAxis::plan(std::int64_t input, std::int64_t output) {
  const double scale = static_cast<double>(input) / static_cast<double>(output);
  const double support = std::max(1.0, scale);
  taps = std::min(input, static_cast<std::int64_t>(std::ceil(2 * support)) + 1);
  first.resize(static_cast<std::size_t>(output));
  weights.resize(static_cast<std::size_t>(output * taps));
  for (std::int64_t i = 0; i < output; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto low = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(center - support + 0.5)));
    const std::int64_t start = std::min(low, input - taps);
    first[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(start);
    double sum = 0;
    const auto weight = [&](std::int64_t k) {
      return std::max(0.0, 1 - std::abs((static_cast<double>(start + k) + 0.5 - center) / support));
    };
    for (std::int64_t k = 0; k < taps; ++k) sum += weight(k);
    float* out = weights.data() + i * taps;
    for (std::int64_t k = 0; k < taps; ++k) out[k] = static_cast<float>(weight(k) / sum);
  }
}

void Resampler::resize(const std::uint8_t* from, const ImageSize& input, std::uint8_t* to, const ImageSize& output,
                       std::int64_t channels) {
  rows_.plan(input.height, output.height);
  columns_.plan(input.width, output.width);
  const std::int64_t stride = input.width * channels;
  const std::int64_t count = output.width * channels;
  row_.resize(static_cast<std::size_t>(stride + kSlack));
  result_.resize(static_cast<std::size_t>(count + kSlack));
  for (std::int64_t y = 0; y < output.height; ++y) {
    blend_rows(from + rows_.first[static_cast<std::size_t>(y)] * stride, stride,
               rows_.weights.data() + y * rows_.taps, rows_.taps, row_.data(), stride);
    if (channels == 3) {
      blend_pixels(row_.data(), columns_.first.data(), columns_.weights.data(), columns_.taps, result_.data(),
                   output.width);
    } else {
      blend_any(row_.data(), columns_, result_.data(), channels);
    }
    round_to_u8(result_.data(), to + y * count, count);
  }
}

}  // namespace headrace
