#include "headrace/pipeline/operations/kernels/pixel_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/simd.h"

namespace headrace {
namespace {

// Scales elements with a pattern, channels innermost; `height` rows of `count` elements.
HEADRACE_SIMD void scale_rows(const std::uint8_t* from, std::int64_t stride, std::int64_t height,
                              std::int64_t count, const float* scale, const float* shift, std::int64_t channels,
                              float* to) {
  constexpr std::int64_t kPattern = ChannelScale::kPattern;
  for (std::int64_t y = 0; y < height; ++y) {
    const std::uint8_t* source = from + y * stride;
    float* out = to + y * count;
    std::int64_t i = 0;
    for (; i + kPattern <= count; i += kPattern) {
      for (std::int64_t j = 0; j < kPattern; ++j) {
        out[i + j] = static_cast<float>(source[i + j]) * scale[j] + shift[j];
      }
    }
    for (; i < count; ++i) out[i] = static_cast<float>(source[i]) * scale[i % channels] + shift[i % channels];
  }
}

// --- everything else: one element at a time, any strides, any of the types ---

[[gnu::always_inline]] inline std::uint8_t to_saturated_u8(float value) {
  return static_cast<std::uint8_t>(std::min(std::max(std::nearbyint(value), 0.0F), 255.0F));
}

template <typename From, typename To>
[[gnu::always_inline]] inline void convert_one(const PixelWork& work, const std::byte* from, std::int64_t channel,
                                               To* to) {
  From value;
  std::memcpy(&value, from, sizeof value);
  if (work.scale == nullptr) {
    if constexpr (std::is_same_v<From, To>) {
      *to = value;
    } else if constexpr (std::is_same_v<To, std::uint8_t>) {
      *to = to_saturated_u8(value);
    } else {
      *to = static_cast<To>(value);
    }
    return;
  }
  const auto c = static_cast<std::size_t>(channel);
  const float scaled = static_cast<float>(value) * work.scale->scale[c] + work.scale->shift[c];
  if constexpr (std::is_same_v<To, std::uint8_t>) {
    *to = to_saturated_u8(scaled);
  } else {
    *to = scaled;
  }
}

template <typename From, typename To>
void convert_any(const PixelWork& work) {
  const bool planes = work.layout == ImageLayout::kChannelsFirst;
  const std::int64_t pixels = work.height * work.width;
  To* const to = reinterpret_cast<To*>(work.to);
  for (std::int64_t y = 0; y < work.height; ++y) {
    for (std::int64_t x = 0; x < work.width; ++x) {
      const std::byte* pixel = work.from + y * work.down + x * work.right;
      const std::int64_t at = y * work.width + x;
      for (std::int64_t c = 0; c < work.channels; ++c) {
        convert_one<From>(work, pixel + c * work.deeper, c,
                          to + (planes ? c * pixels + at : at * work.channels + c));
      }
    }
  }
}

void copy_rows(const PixelWork& work, std::int64_t bytes) {
  if (work.down == bytes) {
    std::memcpy(work.to, work.from, static_cast<std::size_t>(bytes * work.height));
    return;
  }
  for (std::int64_t y = 0; y < work.height; ++y) {
    std::memcpy(work.to + y * bytes, work.from + y * work.down, static_cast<std::size_t>(bytes));
  }
}

bool is_interleaved(const PixelWork& work) noexcept {
  const auto size = static_cast<std::int64_t>(size_of(work.from_type));
  return work.deeper == size && std::abs(work.right) == size * work.channels;
}

// Returns whether it converts u8 RGB to scaled floats.
bool makes_rgb_floats(const PixelWork& work) noexcept {
  return work.from_type == DType::kU8 && is_interleaved(work) && work.channels == 3 &&
         work.to_type == DType::kF32 && work.scale != nullptr;
}

RgbImage rgb_image_of(const PixelWork& work) noexcept {
  const auto* from = reinterpret_cast<const std::uint8_t*>(work.from);
  const bool mirrored = work.right < 0;
  const std::uint8_t* corner = mirrored ? from + (work.width - 1) * work.right : from;
  return {.first = corner + work.border.above * work.down + 3 * work.border.left,
          .stride = work.down,
          .height = work.height,
          .width = work.width,
          .direction = mirrored ? Direction::kMirrored : Direction::kAsStored,
          .border = work.border};
}

// Converts three interleaved channels to scaled floats. Returns false if rows with a pattern are as good.
bool convert_rgb_floats(const PixelWork& work) {
  auto* to = reinterpret_cast<float*>(work.to);
  const ChannelScale& scale = *work.scale;
  if (work.layout == ImageLayout::kChannelsFirst) {
    rgb_kernels().to_planes(rgb_image_of(work), scale.scale.data(), scale.shift.data(), work.traffic, to);
    return true;
  }
  if (work.right > 0 && work.traffic.stores == Stores::kCached && work.border.empty()) return false;
  rgb_kernels().to_pixels(rgb_image_of(work), scale.pattern_scale.data(), scale.pattern_shift.data(), work.traffic,
                          to);
  return true;
}

// Runs the other fast variants for u8 input with interleaved channels without gaps. Returns false if none fits.
bool convert_interleaved_bytes(const PixelWork& work) {
  if (work.layout != ImageLayout::kChannelsLast && work.channels != 1) return false;
  const bool mirrored = work.right < 0, floats = work.to_type == DType::kF32 && work.scale != nullptr;
  if (mirrored && work.channels == 3 && work.to_type == DType::kU8 && work.scale == nullptr) {
    rgb_kernels().mirror(rgb_image_of(work), reinterpret_cast<std::uint8_t*>(work.to));
    return true;
  }
  if (!mirrored && floats && !work.scale->pattern_scale.empty()) {
    std::int64_t height = work.height;
    std::int64_t count = work.width * work.channels;
    if (work.down == count) {
      count *= height;
      height = 1;
    }
    scale_rows(reinterpret_cast<const std::uint8_t*>(work.from), work.down, height, count,
               work.scale->pattern_scale.data(), work.scale->pattern_shift.data(), work.channels,
               reinterpret_cast<float*>(work.to));
    return true;
  }
  return false;
}

}  // namespace

ChannelScale::ChannelScale(std::vector<float> scales, std::vector<float> shifts)
    : scale(std::move(scales)), shift(std::move(shifts)) {
  const auto channels = static_cast<std::int64_t>(scale.size());
  if (kPattern % channels != 0) return;
  for (std::int64_t i = 0; i < kPattern; ++i) {
    pattern_scale.push_back(scale[static_cast<std::size_t>(i % channels)]);
    pattern_shift.push_back(shift[static_cast<std::size_t>(i % channels)]);
  }
}

bool takes_border(const PixelWork& work) noexcept { return makes_rgb_floats(work) && work.width <= kMaxBordered; }

void convert_pixels(const PixelWork& work) {
  if (makes_rgb_floats(work) && convert_rgb_floats(work)) return;
  prefetch(work.traffic.ahead);
  const bool interleaved = is_interleaved(work);
  const bool same_layout = work.layout == ImageLayout::kChannelsLast || work.channels == 1;
  if (work.from_type == work.to_type && work.scale == nullptr && interleaved && same_layout && work.right > 0) {
    copy_rows(work, work.width * work.right);
    return;
  }
  if (work.from_type == DType::kU8 && interleaved && convert_interleaved_bytes(work)) return;
  if (work.from_type == DType::kU8) {
    work.to_type == DType::kU8 ? convert_any<std::uint8_t, std::uint8_t>(work)
                               : convert_any<std::uint8_t, float>(work);
  } else {
    work.to_type == DType::kU8 ? convert_any<float, std::uint8_t>(work) : convert_any<float, float>(work);
  }
}

}  // namespace headrace
