#include "headrace/pipeline/operations/kernels/resample_kernels.h"

#include <algorithm>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace {
namespace {

FixedLevel blend_column(const std::uint8_t* from, std::int64_t stride, const FixedWeight* weights,
                        std::int64_t taps) {
  std::int32_t sum = 0;
  for (std::int64_t k = 0; k < taps; ++k) sum += fixed_product(from[k * stride] << kLevelBits, weights[k]);
  return to_fixed_level(sum);
}

// For pixels 2 p and 2 p + 1 and each tap k, the 8 weights w, w, w, w, v, v, v, v are at 8 (p * taps + k): one
// vector. v is 0 if there is no second pixel.
void plan_pairs(std::span<const std::int32_t> first, std::span<const FixedWeight> weights, PixelPlan& plan) {
  const auto pixels = static_cast<std::int64_t>(first.size());
  plan.taps = static_cast<std::int64_t>(weights.size()) / pixels;
  plan.group = 2;
  plan.first.assign(first.begin(), first.end());
  plan.weights.assign(static_cast<std::size_t>((pixels + 1) / 2 * plan.taps * 8), 0);
  for (std::int64_t x = 0; x < pixels; ++x) {
    for (std::int64_t k = 0; k < plan.taps; ++k) {
      std::fill_n(plan.weights.begin() + 8 * (x / 2 * plan.taps + k) + 4 * (x % 2), 4,
                  weights[static_cast<std::size_t>(x * plan.taps + k)]);
    }
  }
}

void blend_pixel(const FixedLevel* row, const PixelPlan& plan, std::uint8_t* to, std::int64_t x) {
  const FixedLevel* from = row + 3 * plan.first[static_cast<std::size_t>(x)];
  const FixedWeight* weights = plan.weights.data() + 8 * (x / 2 * plan.taps) + 4 * (x % 2);
  std::int32_t sums[3] = {};
  for (std::int64_t k = 0; k < plan.taps; ++k) {
    for (int c = 0; c < 3; ++c) sums[c] += fixed_product(from[3 * k + c], weights[8 * k]);
  }
  for (int c = 0; c < 3; ++c) to[3 * x + c] = to_level(sums[c]);
}

void blend_rows_portable(const std::uint8_t* from, std::int64_t stride, const FixedWeight* weights,
                         std::int64_t taps, FixedLevel* row, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) row[i] = blend_column(from + i, stride, weights, taps);
}

void blend_pixels_portable(const FixedLevel* row, const PixelPlan& plan, std::uint8_t* to, std::int64_t pixels) {
  for (std::int64_t x = 0; x < pixels; ++x) blend_pixel(row, plan, to, x);
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) void blend_rows_avx2(const std::uint8_t* from, std::int64_t stride,
                                                     const FixedWeight* weights, std::int64_t taps,
                                                     FixedLevel* row, std::int64_t count) {
  if (count < 16) return blend_rows_portable(from, stride, weights, taps, row, count);
  for (std::int64_t at = 0; at < count; at += 16) {
    const std::int64_t i = std::min(at, count - 16);  // the last vector overlaps its neighbour
    __m256i sum = _mm256_setzero_si256();
    for (std::int64_t k = 0; k < taps; ++k) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k * stride + i));
      const __m256i levels = _mm256_slli_epi16(_mm256_cvtepu8_epi16(bytes), kLevelBits);
      sum = _mm256_adds_epi16(sum, _mm256_mulhrs_epi16(levels, _mm256_set1_epi16(weights[k])));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(row + i), sum);
  }
}

__attribute__((target("avx512bw"))) void blend_rows_avx512(const std::uint8_t* from, std::int64_t stride,
                                                           const FixedWeight* weights, std::int64_t taps,
                                                           FixedLevel* row, std::int64_t count) {
  if (count < 64) return blend_rows_avx2(from, stride, weights, taps, row, count);
  for (std::int64_t at = 0; at < count; at += 64) {
    const std::int64_t i = std::min(at, count - 64);
    __m512i low = _mm512_setzero_si512(), high = _mm512_setzero_si512();
    for (std::int64_t k = 0; k < taps; ++k) {
      const std::uint8_t* bytes = from + k * stride + i;
      const __m512i weight = _mm512_set1_epi16(weights[k]);
      const __m256i first = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes));
      const __m256i second = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + 32));
      const __m512i first_levels = _mm512_slli_epi16(_mm512_cvtepu8_epi16(first), kLevelBits);
      const __m512i second_levels = _mm512_slli_epi16(_mm512_cvtepu8_epi16(second), kLevelBits);
      low = _mm512_adds_epi16(low, _mm512_mulhrs_epi16(first_levels, weight));
      high = _mm512_adds_epi16(high, _mm512_mulhrs_epi16(second_levels, weight));
    }
    _mm512_storeu_si512(row + i, low);
    _mm512_storeu_si512(row + i + 32, high);
  }
}

// Multiplies two pixels in a vector, each (r, g, b, next value), by one weight per pixel.
__attribute__((target("avx2"), always_inline)) inline __m128i blend_pair(const FixedLevel* row,
                                                                         const std::int32_t* first,
                                                                         const FixedWeight* paired,
                                                                         std::int64_t taps) {
  const FixedLevel* left = row + 3 * first[0];
  const FixedLevel* right = row + 3 * first[1];
  __m128i sum = _mm_setzero_si128();
  for (std::int64_t k = 0; k < taps; ++k) {
    const __m128i pair = _mm_unpacklo_epi64(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(left + 3 * k)),
                                            _mm_loadl_epi64(reinterpret_cast<const __m128i*>(right + 3 * k)));
    const __m128i weights = _mm_loadu_si128(reinterpret_cast<const __m128i*>(paired + 8 * k));
    sum = _mm_adds_epi16(sum, _mm_mulhrs_epi16(pair, weights));
  }
  return _mm_srli_epi16(_mm_adds_epi16(sum, _mm_set1_epi16(1 << (kLevelBits - 1))), kLevelBits);
}

__attribute__((target("avx2"))) void blend_pixels_avx2(const FixedLevel* row, const PixelPlan& plan,
                                                       std::uint8_t* to, std::int64_t pixels) {
  const __m128i without_fourth = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
  const std::int32_t* first = plan.first.data();
  const FixedWeight* paired = plan.weights.data();
  std::int64_t x = 0;
  for (; x + 4 <= pixels; x += 4) {
    const __m128i left = blend_pair(row, first + x, paired + 4 * x * plan.taps, plan.taps);
    const __m128i right = blend_pair(row, first + x + 2, paired + 4 * (x + 2) * plan.taps, plan.taps);
    const __m128i bytes = _mm_shuffle_epi8(_mm_packus_epi16(left, right), without_fourth);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + 3 * x), bytes);
  }
  for (; x < pixels; ++x) blend_pixel(row, plan, to, x);
}

constexpr std::int64_t kPixelLanes = 32;  // of 16 bits

// Plans groups of `group` pixels, a lane for each channel, whose inputs are kPixelLanes * 2 elements of the row.
// Returns false if some group's are more.
bool plan_groups(std::span<const std::int32_t> first, std::span<const FixedWeight> weights, std::size_t group,
                 PixelPlan& plan) {
  const std::size_t pixels = first.size(), taps = weights.size() / pixels, groups = (pixels + group - 1) / group;
  plan.taps = static_cast<std::int64_t>(taps);
  plan.group = static_cast<std::int64_t>(group);
  plan.first.resize(groups);
  plan.places.assign(groups * kPixelLanes, 0);
  plan.weights.assign(groups * taps * kPixelLanes, 0);
  for (std::size_t g = 0; g < groups; ++g) {
    const auto members = first.subspan(g * group, std::min(group, pixels - g * group));
    const auto [low, high] = std::ranges::minmax(members);
    if (3 * (high - low + plan.taps) > 2 * kPixelLanes) return false;
    plan.first[g] = low;
    for (std::size_t i = 0; i < members.size(); ++i) {
      for (std::size_t c = 0; c < 3; ++c) {
        const std::size_t lane = 3 * i + c;
        plan.places[g * kPixelLanes + lane] =
            static_cast<std::uint16_t>(3 * (members[i] - low)) + static_cast<std::uint16_t>(c);
        for (std::size_t k = 0; k < taps; ++k) {
          plan.weights[(g * taps + k) * kPixelLanes + lane] = weights[(g * group + i) * taps + k];
        }
      }
    }
  }
  return true;
}

void plan_pixels_avx512(std::span<const std::int32_t> first, std::span<const FixedWeight> weights,
                        PixelPlan& plan) {
  if (!plan_groups(first, weights, 10, plan) && !plan_groups(first, weights, 5, plan)) {
    plan_pairs(first, weights, plan);
  }
}

// Each lane selects its element from two vectors; that of the next tap lies three elements further on.
__attribute__((target("avx512bw"))) void blend_pixels_avx512(const FixedLevel* row, const PixelPlan& plan,
                                                             std::uint8_t* to, std::int64_t pixels) {
  if (plan.group == 2) return blend_pixels_avx2(row, plan, to, pixels);
  const FixedWeight* weights = plan.weights.data();
  const std::uint16_t* places = plan.places.data();
  const std::int32_t* first = plan.first.data();
  for (std::int64_t x = 0; x < pixels; x += plan.group, places += kPixelLanes) {
    const FixedLevel* from = row + 3 * std::int64_t{*first++};
    const __m512i low = _mm512_loadu_si512(from), high = _mm512_loadu_si512(from + kPixelLanes);
    __m512i place = _mm512_loadu_si512(places), sum = _mm512_setzero_si512();
    for (std::int64_t k = 0; k < plan.taps; ++k, weights += kPixelLanes) {
      const __m512i levels = _mm512_permutex2var_epi16(low, place, high);
      sum = _mm512_adds_epi16(sum, _mm512_mulhrs_epi16(levels, _mm512_loadu_si512(weights)));
      place = _mm512_add_epi16(place, _mm512_set1_epi16(3));
    }
    sum = _mm512_adds_epi16(sum, _mm512_set1_epi16(1 << (kLevelBits - 1)));
    const __m256i bytes = _mm512_maskz_cvtepi16_epi8(~__mmask32{}, _mm512_srli_epi16(sum, kLevelBits));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + 3 * x), bytes);
  }
}

#endif

ResampleKernels choose_resample_kernels() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512bw")) return {blend_rows_avx512, plan_pixels_avx512, blend_pixels_avx512};
  if (__builtin_cpu_supports("avx2")) return {blend_rows_avx2, plan_pairs, blend_pixels_avx2};
#endif
  return portable_resample_kernels();
}

}  // namespace

const ResampleKernels& portable_resample_kernels() noexcept {
  static constexpr ResampleKernels kernels{blend_rows_portable, plan_pairs, blend_pixels_portable};
  return kernels;
}

const ResampleKernels& resample_kernels() noexcept {
  static const ResampleKernels best = choose_resample_kernels();
  return best;
}

}  // namespace headrace
