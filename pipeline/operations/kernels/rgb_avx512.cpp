#include "headrace/pipeline/operations/kernels/rgb_variants.h"

#include <algorithm>
#include <array>

#include "headrace/pipeline/operations/kernels/rgb_rows.h"
#include "headrace/pipeline/operations/kernels/rgb_vectors.h"

#if defined(__x86_64__)
// g++ 12 mistakenly warns about the intrinsics' own undefined vectors.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace headrace {
namespace {

template <Stores kStores>
HEADRACE_AVX512 [[gnu::always_inline]] inline void store_avx512(__m128i values, __m512 scale, __m512 shift,
                                                                float* to) {
  const __m512 floats = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(values));
  const __m512 result = _mm512_add_ps(_mm512_mul_ps(floats, scale), shift);
  if constexpr (kStores == Stores::kNonTemporal) {
    _mm512_stream_ps(to, result);
  } else {
    _mm512_storeu_ps(to, result);
  }
}

// Stores the planes of a row, 16 pixels of each.
struct PlaneStores {
  __m512 scale[3], shift[3];
  std::int64_t plane;

  HEADRACE_AVX512
  [[gnu::always_inline]] PlaneStores(const RgbImage& image, const float* scales, const float* shifts)
      : scale{_mm512_set1_ps(scales[0]), _mm512_set1_ps(scales[1]), _mm512_set1_ps(scales[2])},
        shift{_mm512_set1_ps(shifts[0]), _mm512_set1_ps(shifts[1]), _mm512_set1_ps(shifts[2])},
        plane(image.height * image.width) {}

  template <Direction kDirection, Stores kStores>
  HEADRACE_AVX512 [[gnu::always_inline]] void put(const Pixels16& pixels, float* to) const {
    store_avx512<kStores>(pick(pixels, kChannelShuffle<kDirection, 0>), scale[0], shift[0], to);
    store_avx512<kStores>(pick(pixels, kChannelShuffle<kDirection, 1>), scale[1], shift[1], to + plane);
    store_avx512<kStores>(pick(pixels, kChannelShuffle<kDirection, 2>), scale[2], shift[2], to + 2 * plane);
  }
};

template <Direction kDirection, Stores kStores>
HEADRACE_AVX512 void planes_avx512(const RgbImage& image, const float* scale, const float* shift, FetchAhead ahead,
                                   float* to) {
  const std::int64_t whole = image.width / kRgbLanes * kRgbLanes;
  const PlaneStores planes(image, scale, shift);
  RgbRows rows(image);
  for (std::int64_t y = 0; y < image.height; ++y) {
    const std::uint8_t* from = rows.row(y);
    ahead.fetch_piece();
    for (std::int64_t x = 0; x < whole; x += kRgbLanes) {
      planes.template put<kDirection, kStores>(load_pixels(from + 3 * x),
                                               to + y * image.width + written_at<kDirection>(image, x));
    }
    planes_part(image, from, y, whole, image.width, scale, shift, to);
  }
}

// Masks the bytes of 16 pixels that lie within the picture.
struct Mask48 {
  std::uint64_t bits = 0;

  static Mask48 of(const RgbImage& image, std::int64_t x) noexcept {
    const auto bytes_to = [&](std::int64_t column) {
      return 3 * std::clamp<std::int64_t>(column - x, 0, kRgbLanes);
    };
    const auto ones = [](std::int64_t count) { return (std::uint64_t{1} << count) - 1; };
    return {ones(bytes_to(image.width - image.border.right)) & ~ones(bytes_to(image.border.left))};
  }
};

HEADRACE_AVX512 [[gnu::always_inline]] inline Pixels16 load_within(Mask48 mask, const std::uint8_t* from) {
  return {{_mm_maskz_loadu_epi8(static_cast<__mmask16>(mask.bits), from),
           _mm_maskz_loadu_epi8(static_cast<__mmask16>(mask.bits >> 16), from + 16),
           _mm_maskz_loadu_epi8(static_cast<__mmask16>(mask.bits >> 32), from + 32)}};
}

// Converts with a border, in whole vectors: bytes outside of the picture are not loaded.
template <Direction kDirection, Stores kStores>
HEADRACE_AVX512 void bordered_planes_avx512(const RgbImage& image, const float* scale, const float* shift,
                                            FetchAhead ahead, float* to) {
  const PlaneStores planes(image, scale, shift);
  const RgbBorder& border = image.border;
  Mask48 masks[kMaxBordered / kRgbLanes];
  for (std::int64_t x = 0; x < image.width; x += kRgbLanes) masks[x / kRgbLanes] = Mask48::of(image, x);
  const std::uint8_t* corner = image.first - 3 * border.left;
  for (std::int64_t y = 0; y < image.height; ++y) {
    const bool within = y >= border.above && y < image.height - border.below;
    ahead.fetch_piece();
    for (std::int64_t x = 0; x < image.width; x += kRgbLanes) {
      const Mask48 mask = within ? masks[x / kRgbLanes] : Mask48{};
      planes.template put<kDirection, kStores>(
          load_within(mask, corner + (y - border.above) * image.stride + 3 * x),
          to + y * image.width + written_at<kDirection>(image, x));
    }
  }
}

}  // namespace

void to_planes_avx512(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                      float* to) {
  static constexpr RgbForms kForms = HEADRACE_RGB_FORMS(planes_avx512);
  static constexpr RgbForms kBordered = HEADRACE_RGB_FORMS(bordered_planes_avx512);
  (can_mask(image) ? kBordered : kForms).run(image, scale, shift, traffic, to);
}

}  // namespace headrace

#pragma GCC diagnostic pop
#endif
