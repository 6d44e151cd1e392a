#include "headrace/pipeline/operations/machinery/resampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace headrace {
namespace {

void blend_any(const FixedLevel* row, const ResampleAxis& axis, std::uint8_t* result, std::int64_t channels) {
  const auto count = static_cast<std::int64_t>(axis.first.size());
  for (std::int64_t x = 0; x < count; ++x) {
    const FixedWeight* weights = axis.weights.data() + x * axis.taps;
    const FixedLevel* from = row + axis.first[static_cast<std::size_t>(x)] * channels;
    for (std::int64_t c = 0; c < channels; ++c) {
      std::int32_t sum = 0;
      for (std::int64_t k = 0; k < axis.taps; ++k) sum += fixed_product(from[k * channels + c], weights[k]);
      result[x * channels + c] = to_level(sum);
    }
  }
}

}  // namespace

void ResampleAxis::plan(std::int64_t input, std::int64_t output, std::int64_t from, std::int64_t to) {
  const double scale = static_cast<double>(input) / static_cast<double>(output);
  const double support = std::max(1.0, scale);
  taps = std::min(input, static_cast<std::int64_t>(std::ceil(2 * support)) + 1);
  first.resize(static_cast<std::size_t>(to - from));
  weights.resize(static_cast<std::size_t>((to - from) * taps));
  shares_.resize(static_cast<std::size_t>(taps));
  for (std::int64_t i = from; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const auto wanted = std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(center - support + 0.5)));
    const std::int64_t low = std::min(wanted, input - taps);
    if (i == from) begin = low;
    end = low + taps;
    first[static_cast<std::size_t>(i - from)] = static_cast<std::int32_t>(low - begin);
    weigh(static_cast<double>(low) + 0.5 - center, support, weights.data() + (i - from) * taps);
  }
}

// Computes the weights of an output pixel whose first input pixel lies `start` from its centre: rounded shares;
// the rounding remainder goes to the largest.
void ResampleAxis::weigh(double start, double support, FixedWeight* out) {
  double sum = 0;
  for (std::int64_t k = 0; k < taps; ++k) {
    const double share = std::max(0.0, 1 - std::abs(start + static_cast<double>(k)) / support);
    shares_[static_cast<std::size_t>(k)] = share;
    sum += share;
  }
  const double unit = kWholeWeight / sum;
  std::int32_t left = kWholeWeight;
  for (std::int64_t k = 0; k < taps; ++k) {
    out[k] = static_cast<FixedWeight>(shares_[static_cast<std::size_t>(k)] * unit + 0.5);
    left -= out[k];
  }
  FixedWeight& largest = *std::max_element(out, out + taps);
  largest = static_cast<FixedWeight>(largest + left);
}

ImageWindow Resampler::plan(const ImageSize& input, const ImageSize& output, const ImageWindow& part) {
  rows_.plan(input.height, output.height, part.top, part.top + part.height);
  columns_.plan(input.width, output.width, part.left, part.left + part.width);
  return {.top = rows_.begin,
          .left = columns_.begin,
          .height = rows_.end - rows_.begin,
          .width = columns_.end - columns_.begin};
}

void Resampler::run(const std::uint8_t* from, std::int64_t stride, std::uint8_t* to, std::int64_t channels) {
  const ResampleKernels& kernels = resample_kernels();
  if (channels == 3) kernels.plan_pixels(columns_.first, columns_.weights, pixels_);
  const auto height = static_cast<std::int64_t>(rows_.first.size());
  const auto width = static_cast<std::int64_t>(columns_.first.size());
  const std::int64_t used = (columns_.end - columns_.begin) * channels, count = width * channels;
  row_.resize(static_cast<std::size_t>(used + kRowSlack));
  result_.resize(static_cast<std::size_t>(count + kRowSlack));
  for (std::int64_t y = 0; y < height; ++y) {
    kernels.blend_rows(from + rows_.first[static_cast<std::size_t>(y)] * stride, stride,
                       rows_.weights.data() + y * rows_.taps, rows_.taps, row_.data(), used);
    // Later rows overwrite what a kernel writes past the end of a row; only the last rows need slack.
    const bool has_room = (height - 1 - y) * count >= kRowSlack;
    std::uint8_t* const result = has_room ? to + y * count : result_.data();
    if (channels == 3) {
      kernels.blend_pixels(row_.data(), pixels_, result, width);
    } else {
      blend_any(row_.data(), columns_, result, channels);
    }
    if (!has_room) std::memcpy(to + y * count, result, static_cast<std::size_t>(count));
  }
}

}  // namespace headrace
