// Parts of the RGB kernels for x86-64: 16 pixels in three vectors of 16 bytes, taken apart by byte shuffles, and
// the choice among a kernel's forms.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "headrace/devices/base/memory.h"
#include "headrace/pipeline/operations/kernels/rgb_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define HEADRACE_AVX2 [[gnu::target("avx2")]]
#define HEADRACE_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]]

namespace headrace {

inline constexpr std::int64_t kRgbLanes = 16;  // pixels at a time: 48 bytes, three vectors

// Sources of the bytes of a result of 16: for each of the three source vectors a byte shuffle, 0x80 if the byte
// comes from another one.
using ByteShuffle = std::array<std::array<std::uint8_t, 16>, 3>;

template <typename SourceOf>
constexpr ByteShuffle shuffle_of(const SourceOf& source_of) {
  ByteShuffle shuffle{};
  for (int i = 0; i < 16; ++i) {
    for (int part = 0; part < 3; ++part) {
      const int at = source_of(i);
      shuffle[static_cast<std::size_t>(part)][static_cast<std::size_t>(i)] =
          static_cast<std::uint8_t>(at / 16 == part ? at % 16 : 0x80);
    }
  }
  return shuffle;
}

// Returns the 16 values of a channel.
template <Direction kDirection, int kChannel>
constexpr ByteShuffle kChannelShuffle = shuffle_of([](int i) {
  return 3 * (kDirection == Direction::kMirrored ? 15 - i : i) + kChannel;
});

// Returns a third of the 16 pixels, from right to left if mirrored.
template <Direction kDirection, int kPart>
constexpr ByteShuffle kPartShuffle = shuffle_of([](int i) {
  const int at = 16 * kPart + i;
  return kDirection == Direction::kMirrored ? 3 * (15 - at / 3) + at % 3 : at;
});

struct Pixels16 {
  __m128i part[3];
};

HEADRACE_AVX2 [[gnu::always_inline]] inline Pixels16 load_pixels(const std::uint8_t* from) {
  const auto* vectors = reinterpret_cast<const __m128i*>(from);
  return {{_mm_loadu_si128(vectors), _mm_loadu_si128(vectors + 1), _mm_loadu_si128(vectors + 2)}};
}

HEADRACE_AVX2 [[gnu::always_inline]] inline __m128i pick(const Pixels16& pixels, const ByteShuffle& shuffle) {
  const auto part = [&](std::size_t i) __attribute__((target("avx2"), always_inline)) {
    const auto mask = _mm_loadu_si128(reinterpret_cast<const __m128i*>(shuffle[i].data()));
    return _mm_shuffle_epi8(pixels.part[i], mask);
  };
  return _mm_or_si128(part(0), _mm_or_si128(part(1), part(2)));
}

// Returns whether stores can be non-temporal: they need whole aligned vectors; every row and plane is aligned if
// the first one is.
inline bool can_stream(const RgbImage& image, const float* to) noexcept {
  return reinterpret_cast<std::uintptr_t>(to) % 64 == 0 && image.width % kRgbLanes == 0;
}

template <Direction kDirection>
constexpr std::int64_t written_at(const RgbImage& image, std::int64_t x) {
  return kDirection == Direction::kMirrored ? image.width - x - kRgbLanes : x;
}

using RgbKernel = void (*)(const RgbImage&, const float*, const float*, FetchAhead, float*);
// One kernel in its four variants.
struct RgbForms {
  RgbKernel forward, mirrored, forward_streamed, mirrored_streamed;

  void run(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
           float* to) const {
    const bool turned = image.direction == Direction::kMirrored;
    const FetchAhead ahead(traffic.ahead, image.height);
    if (traffic.stores == Stores::kCached || !can_stream(image, to)) {
      return (turned ? mirrored : forward)(image, scale, shift, ahead, to);
    }
    (turned ? mirrored_streamed : forward_streamed)(image, scale, shift, ahead, to);
  }
};

// The variants of kernel<direction, stores, more ...>.
#define HEADRACE_RGB_FORMS(kernel, ...)                                                \
  {                                                                                    \
    kernel<Direction::kAsStored, Stores::kCached __VA_OPT__(, ) __VA_ARGS__>,          \
        kernel<Direction::kMirrored, Stores::kCached __VA_OPT__(, ) __VA_ARGS__>,      \
        kernel<Direction::kAsStored, Stores::kNonTemporal __VA_OPT__(, ) __VA_ARGS__>, \
        kernel<Direction::kMirrored, Stores::kNonTemporal __VA_OPT__(, ) __VA_ARGS__>  \
  }

// Returns whether the border can be masked: every vector of a row is whole.
inline bool can_mask(const RgbImage& image) noexcept {
  return !image.border.empty() && image.width % kRgbLanes == 0;
}

}  // namespace headrace

#endif
