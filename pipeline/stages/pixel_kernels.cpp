#include "headrace/pipeline/stages/pixel_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "headrace/pipeline/stages/simd.h"

namespace headrace {
namespace {

typedef std::uint8_t Bytes16 __attribute__((vector_size(16)));
typedef float Floats16 __attribute__((vector_size(64)));

constexpr std::int64_t kLanes = 16;

// --- u8 pixels of three interleaved channels, 16 at a time ---

struct Pixels16 {
  Bytes16 part[3];
};

[[gnu::always_inline]] inline void load(Pixels16& pixels, const std::uint8_t* from) {
  std::memcpy(&pixels, from, sizeof pixels);
}

// The 16 values of one channel.
template <int kChannel>
[[gnu::always_inline]] inline void pick(const Pixels16& pixels, Bytes16& channel) {
  // Value i is byte 3 i + kChannel of the 48; a shuffle chooses between two of the three parts.
  Bytes16 low_mask, high_mask;
  for (int i = 0; i < 16; ++i) {
    const int at = 3 * i + kChannel;
    low_mask[i] = static_cast<std::uint8_t>(at < 32 ? at : 0);
    high_mask[i] = static_cast<std::uint8_t>(at < 32 ? i : at - 16);
  }
  const Bytes16 low = __builtin_shuffle(pixels.part[0], pixels.part[1], low_mask);
  channel = __builtin_shuffle(low, pixels.part[2], high_mask);
}

// The same 16 pixels from right to left.
[[gnu::always_inline]] inline void mirror(const Pixels16& pixels, Pixels16& mirrored) {
  for (int part = 0; part < 3; ++part) {
    Bytes16 low_mask, high_mask;
    for (int i = 0; i < 16; ++i) {
      const int at = 16 * part + i;
      const int source = 3 * (15 - at / 3) + at % 3;
      low_mask[i] = static_cast<std::uint8_t>(source < 32 ? source : 0);
      high_mask[i] = static_cast<std::uint8_t>(source < 32 ? i : source - 16);
    }
    const Bytes16 low = __builtin_shuffle(pixels.part[0], pixels.part[1], low_mask);
    mirrored.part[part] = __builtin_shuffle(low, pixels.part[2], high_mask);
  }
}

[[gnu::always_inline]] inline void scale_and_store(const Bytes16& values, float scale, float shift, float* to) {
  const Floats16 result = __builtin_convertvector(values, Floats16) * scale + shift;
  std::memcpy(to, &result, sizeof result);
}

// A row of u8 pixels left to right into `mirrored`.
[[gnu::always_inline]] inline void mirror_row(const std::uint8_t* from, std::int64_t width, std::uint8_t* to) {
  std::int64_t x = 0;
  for (; x + kLanes <= width; x += kLanes) {
    Pixels16 pixels, mirrored;
    load(pixels, from + 3 * x);
    mirror(pixels, mirrored);
    std::memcpy(to + 3 * (width - x - kLanes), &mirrored, sizeof mirrored);
  }
  for (; x < width; ++x) {
    for (int c = 0; c < 3; ++c) to[3 * (width - 1 - x) + c] = from[3 * x + c];
  }
}

// `first` is the leftmost pixel as stored in both directions.
HEADRACE_SIMD void mirror_rgb(const std::uint8_t* first, std::int64_t stride, std::int64_t height, std::int64_t width,
                              std::uint8_t* to) {
  for (std::int64_t y = 0; y < height; ++y) mirror_row(first + y * stride, width, to + 3 * y * width);
}

template <bool kMirrored>
[[gnu::always_inline]] inline void planes_row(const std::uint8_t* from, std::int64_t width, const float* scale,
                                              const float* shift, float* red, float* green, float* blue) {
  std::int64_t x = 0;
  for (; x + kLanes <= width; x += kLanes) {
    Pixels16 pixels;
    load(pixels, from + 3 * x);
    if constexpr (kMirrored) {
      Pixels16 turned;
      mirror(pixels, turned);
      pixels = turned;
    }
    Bytes16 r, g, b;
    pick<0>(pixels, r);
    pick<1>(pixels, g);
    pick<2>(pixels, b);
    const std::int64_t at = kMirrored ? width - x - kLanes : x;
    scale_and_store(r, scale[0], shift[0], red + at);
    scale_and_store(g, scale[1], shift[1], green + at);
    scale_and_store(b, scale[2], shift[2], blue + at);
  }
  for (; x < width; ++x) {
    const std::int64_t at = kMirrored ? width - 1 - x : x;
    red[at] = static_cast<float>(from[3 * x]) * scale[0] + shift[0];
    green[at] = static_cast<float>(from[3 * x + 1]) * scale[1] + shift[1];
    blue[at] = static_cast<float>(from[3 * x + 2]) * scale[2] + shift[2];
  }
}

// (H, W, 3) u8 -> (3, H, W) f32.
HEADRACE_SIMD void rgb_to_planes(const std::uint8_t* first, std::int64_t stride, std::int64_t height,
                                 std::int64_t width, const float* scale, const float* shift, float* to) {
  const std::int64_t plane = height * width;
  for (std::int64_t y = 0; y < height; ++y) {
    float* row = to + y * width;
    planes_row<false>(first + y * stride, width, scale, shift, row, row + plane, row + 2 * plane);
  }
}

HEADRACE_SIMD void rgb_to_mirrored_planes(const std::uint8_t* first, std::int64_t stride, std::int64_t height,
                                          std::int64_t width, const float* scale, const float* shift, float* to) {
  const std::int64_t plane = height * width;
  for (std::int64_t y = 0; y < height; ++y) {
    float* row = to + y * width;
    planes_row<true>(first + y * stride, width, scale, shift, row, row + plane, row + 2 * plane);
  }
}

// Elements in a row, channels innermost, with a scale pattern; `height` rows of `count` elements.
HEADRACE_SIMD void scale_rows(const std::uint8_t* from, std::int64_t stride, std::int64_t height, std::int64_t count,
                              const float* scale, const float* shift, std::int64_t channels, float* to) {
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

// (H, W, 3) u8 -> the mirrored (H, W, 3) f32.
HEADRACE_SIMD void scale_mirrored_rgb(const std::uint8_t* first, std::int64_t stride, std::int64_t height,
                                      std::int64_t width, const float* scale, const float* shift, float* to) {
  for (std::int64_t y = 0; y < height; ++y) {
    const std::uint8_t* from = first + y * stride;
    float* row = to + 3 * y * width;
    std::int64_t x = 0;
    for (; x + kLanes <= width; x += kLanes) {
      Pixels16 pixels, mirrored;
      load(pixels, from + 3 * x);
      mirror(pixels, mirrored);
      float* out = row + 3 * (width - x - kLanes);
      for (int part = 0; part < 3; ++part) {
        for (int j = 0; j < 16; ++j) {
          const int at = 16 * part + j;
          out[at] = static_cast<float>(mirrored.part[part][j]) * scale[at] + shift[at];
        }
      }
    }
    for (; x < width; ++x) {
      float* out = row + 3 * (width - 1 - x);
      for (int c = 0; c < 3; ++c) out[c] = static_cast<float>(from[3 * x + c]) * scale[c] + shift[c];
    }
  }
}

// --- everything else: one element at a time, any strides, any of the types ---

[[gnu::always_inline]] inline std::uint8_t saturate(float value) {
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
      *to = saturate(value);
    } else {
      *to = static_cast<To>(value);
    }
    return;
  }
  const auto c = static_cast<std::size_t>(channel);
  const float scaled = static_cast<float>(value) * work.scale->scale[c] + work.scale->shift[c];
  if constexpr (std::is_same_v<To, std::uint8_t>) {
    *to = saturate(scaled);
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
        convert_one<From>(work, pixel + c * work.deeper, c, to + (planes ? c * pixels + at : at * work.channels + c));
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

// The fast forms; false where none fits. u8 input, channels interleaved without gaps.
bool convert_interleaved_bytes(const PixelWork& work) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(work.from);
  const bool mirrored = work.right < 0;
  const std::uint8_t* leftmost = mirrored ? from + (work.width - 1) * work.right : from;
  const bool floats = work.to_type == DType::kF32 && work.scale != nullptr;
  if (work.channels == 3 && work.layout == ImageLayout::kChannelsFirst && floats) {
    auto* to = reinterpret_cast<float*>(work.to);
    const auto convert = mirrored ? rgb_to_mirrored_planes : rgb_to_planes;
    convert(leftmost, work.down, work.height, work.width, work.scale->scale.data(), work.scale->shift.data(), to);
    return true;
  }
  if (work.layout != ImageLayout::kChannelsLast && work.channels != 1) return false;
  if (mirrored && work.channels == 3 && work.to_type == DType::kU8 && work.scale == nullptr) {
    mirror_rgb(leftmost, work.down, work.height, work.width, reinterpret_cast<std::uint8_t*>(work.to));
    return true;
  }
  if (mirrored && work.channels == 3 && floats) {
    scale_mirrored_rgb(leftmost, work.down, work.height, work.width, work.scale->pattern_scale.data(),
                       work.scale->pattern_shift.data(), reinterpret_cast<float*>(work.to));
    return true;
  }
  if (!mirrored && floats && !work.scale->pattern_scale.empty()) {
    std::int64_t height = work.height;
    std::int64_t count = work.width * work.channels;
    if (work.down == count) {
      count *= height;
      height = 1;
    }
    scale_rows(from, work.down, height, count, work.scale->pattern_scale.data(), work.scale->pattern_shift.data(),
               work.channels, reinterpret_cast<float*>(work.to));
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

void convert_pixels(const PixelWork& work) {
  const auto size = static_cast<std::int64_t>(size_of(work.from_type));
  const bool interleaved = work.deeper == size && std::abs(work.right) == size * work.channels;
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
