#include "headrace/pipeline/operations/kernels/rgb_variants.h"

#include <algorithm>
#include <array>

#include "headrace/devices/base/memory.h"

#if defined(__x86_64__)
#include <immintrin.h>
// g++ 12 mistakenly warns about the intrinsics' own undefined vectors.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace headrace {

#if defined(__x86_64__)

namespace {

#define HEADRACE_VBMI [[gnu::target("avx512f,avx512bw,avx512vl,avx512vbmi")]]

constexpr std::int64_t kPixels = kPermutedPixels;  // at a time: 96 bytes, a vector and a half

// Sources of the lowest byte of each of 16 values, for one channel and half of the pixels each: one permutation
// takes them out of 96 bytes and widens them to 32 bits.
using Permutations = std::array<std::array<std::uint8_t, 64>, 6>;
constexpr Permutations permutations_of(Direction direction) {
  Permutations all{};
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t x = 0; x < kPixels; ++x) {
      const std::size_t from = direction == Direction::kMirrored ? kPixels - 1 - x : x;
      all[2 * channel + x / 16][x % 16 * 4] = static_cast<std::uint8_t>(3 * from + channel);
    }
  }
  return all;
}
template <Direction kDirection>
alignas(64) constexpr Permutations kPermutations = permutations_of(kDirection);

// Masks the bytes of 32 pixels that lie within the picture; the others are not loaded.
struct Mask96 {
  std::uint64_t low = ~std::uint64_t{0}, high = 0xffff'ffff;

  static Mask96 of(const RgbImage& image, std::int64_t x) noexcept {
    const auto bytes_to = [&](std::int64_t column) {
      return 3 * std::clamp<std::int64_t>(column - x, 0, kPixels);
    };
    const std::int64_t begin = bytes_to(image.border.left), end = bytes_to(image.width - image.border.right);
    return {ones(end) & ~ones(begin), ones(end - 64) & ~ones(begin - 64)};
  }

 private:
  static std::uint64_t ones(std::int64_t count) noexcept {
    if (count <= 0) return 0;
    return count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
  }
};

// Computes one of the three channels, 16 pixels at a time.
struct ChannelLanes {
  __m512 scale, shift;

  template <Stores kStores>
  HEADRACE_VBMI [[gnu::always_inline]] void put(__m512i bytes, __m512i more, __m512i order, float* to) const {
    constexpr __mmask64 kLowest = 0x1111'1111'1111'1111;
    const __m512i values = _mm512_maskz_permutex2var_epi8(kLowest, bytes, order, more);
    const __m512 result = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(values), scale), shift);
    if constexpr (kStores == Stores::kNonTemporal) {
      _mm512_stream_ps(to, result);
    } else {
      _mm512_storeu_ps(to, result);
    }
  }
};

template <Direction kDirection, Stores kStores>
HEADRACE_VBMI void planes_vbmi(const RgbImage& image, const float* scale, const float* shift, FetchAhead ahead,
                               float* to) {
  const std::int64_t plane = image.height * image.width;
  __m512i order[6];
  ChannelLanes channels[3];
  for (std::size_t i = 0; i < 6; ++i) order[i] = _mm512_load_si512(kPermutations<kDirection>[i].data());
  for (std::size_t c = 0; c < 3; ++c) channels[c] = {_mm512_set1_ps(scale[c]), _mm512_set1_ps(shift[c])};
  const RgbBorder border = image.border;
  const std::int64_t height = image.height, width = image.width, stride = image.stride;
  const bool bordered = !border.empty();
  Mask96 masks[kMaxBordered / kPixels];
  for (std::int64_t x = 0; bordered && x < width; x += kPixels) masks[x / kPixels] = Mask96::of(image, x);
  const std::uint8_t* row = image.first - border.above * stride - 3 * border.left;
  for (std::int64_t y = 0; y < height; ++y, row += stride) {
    const bool within = y >= border.above && y < height - border.below;
    ahead.fetch_piece();
    for (std::int64_t x = 0; x < width; x += kPixels) {
      const Mask96 mask = !within ? Mask96{0, 0} : bordered ? masks[x / kPixels] : Mask96{};
      const __m512i bytes = _mm512_maskz_loadu_epi8(mask.low, row + 3 * x);
      const __m512i more = _mm512_maskz_loadu_epi8(mask.high, row + 3 * x + 64);
      float* out = to + y * width + (kDirection == Direction::kMirrored ? width - x - kPixels : x);
      for (std::int64_t c = 0; c < 3; ++c) {
        channels[c].put<kStores>(bytes, more, order[2 * c], out + c * plane);
        channels[c].put<kStores>(bytes, more, order[2 * c + 1], out + c * plane + 16);
      }
    }
  }
}

}  // namespace

bool can_permute_bytes() noexcept {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

void to_planes_vbmi(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                    float* to) {
  const bool mirrored = image.direction == Direction::kMirrored;
  const FetchAhead ahead(traffic.ahead, image.height);
  if (traffic.stores == Stores::kCached || reinterpret_cast<std::uintptr_t>(to) % 64 != 0) {
    return (mirrored ? planes_vbmi<Direction::kMirrored, Stores::kCached>
                     : planes_vbmi<Direction::kAsStored, Stores::kCached>)(image, scale, shift, ahead, to);
  }
  (mirrored ? planes_vbmi<Direction::kMirrored, Stores::kNonTemporal>
            : planes_vbmi<Direction::kAsStored, Stores::kNonTemporal>)(image, scale, shift, ahead, to);
}

#undef HEADRACE_VBMI

#else

bool can_permute_bytes() noexcept { return false; }
void to_planes_vbmi(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                    float* to) {
  portable_rgb_kernels().to_planes(image, scale, shift, traffic, to);
}

#endif

}  // namespace headrace

#if defined(__x86_64__)
#pragma GCC diagnostic pop
#endif
