#include "headrace/tools/pipelines/cifar_image.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "headrace/devices/base/memory.h"
#include "headrace/tools/pipelines/channel_statistics.h"

#if defined(__x86_64__)
#include <immintrin.h>
// g++ 12 takes the intrinsics' own undefined vectors for a mistake.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

namespace headrace::tools {
namespace {

constexpr int kSide = kCifarSide, kRowBytes = 3 * kSide;

FetchAhead fetching(const std::uint8_t* next) {
  return FetchAhead(std::as_bytes(std::span(next, kCifarBytes)), kSide);
}

void augment_portable(const std::uint8_t* image, const CifarWindow& window, const CifarNormal& normal,
                      const std::uint8_t* next, float* to) {
  FetchAhead ahead = fetching(next);
  const int first = std::max(0, -window.left), last = std::min(kSide, kSide - window.left);
  for (int y = 0; y < kSide; ++y) {
    ahead.fetch_piece();
    const int from = y + window.top;
    for (int channel = 0; channel < 3; ++channel) {
      float* row = to + channel * kCifarPlane + y * kSide;
      const float scale = normal.scale[channel], shift = normal.shift[channel];
      std::fill(row, row + kSide, shift);
      if (from < 0 || from >= kSide) continue;
      const std::uint8_t* pixels = image + (from * kSide + window.left) * 3 + channel;
      for (int x = first; x < last; ++x) {
        row[window.mirrored ? kSide - 1 - x : x] = static_cast<float>(pixels[x * 3]) * scale + shift;
      }
    }
  }
}

#if defined(__x86_64__)

#define HEADRACE_AVX2 [[gnu::target("avx2")]]
#define HEADRACE_VBMI [[gnu::target("avx512f,avx512bw,avx512vl,avx512vbmi")]]

bool is_aligned(const float* to) { return reinterpret_cast<std::uintptr_t>(to) % 64 == 0; }

// --- AVX-512 with byte permutations: one permutation takes 16 values of a channel out of a row of 96 bytes and
// widens them to 32 bits at once; what lies outside the image is not loaded ---

// Which byte of the row becomes the lowest byte of each of 16 values, a channel and half of the window each.
using Permutations = std::array<std::array<std::uint8_t, 64>, 6>;
constexpr Permutations permutations(bool mirrored) {
  Permutations all{};
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t x = 0; x < kSide; ++x) {
      const std::size_t from = mirrored ? kSide - 1 - x : x;
      all[2 * channel + x / 16][x % 16 * 4] = static_cast<std::uint8_t>(3 * from + channel);
    }
  }
  return all;
}
alignas(64) constexpr Permutations kPermutations[] = {permutations(false), permutations(true)};

template <bool kNonTemporal>
HEADRACE_VBMI void augment_rows_vbmi(const std::uint8_t* image, const CifarWindow& window,
                                     const CifarNormal& normal, const std::uint8_t* next, float* to) {
  constexpr __mmask64 kLowest = 0x1111'1111'1111'1111;
  __m512i order[6];
  __m512 scale[3], shift[3];
  for (std::size_t i = 0; i < 6; ++i)
    order[i] = _mm512_load_si512(kPermutations[window.mirrored ? 1 : 0][i].data());
  for (std::size_t c = 0; c < 3; ++c) {
    scale[c] = _mm512_set1_ps(normal.scale[c]);
    shift[c] = _mm512_set1_ps(normal.shift[c]);
  }
  const int first = 3 * std::max(0, -window.left), last = kRowBytes - 3 * std::max(0, window.left);
  const __mmask64 low = ~std::uint64_t{0} << first, high = (std::uint64_t{1} << (last - 64)) - 1;
  FetchAhead ahead = fetching(next);
  for (int y = 0; y < kSide; ++y) {
    ahead.fetch_piece();
    const int row = y + window.top;
    const bool within = row >= 0 && row < kSide;
    const std::uint8_t* from = image + std::clamp(row, 0, kSide - 1) * kRowBytes + 3 * window.left;
    const __m512i a = _mm512_maskz_loadu_epi8(within ? low : 0, from);
    const __m512i b = _mm512_maskz_loadu_epi8(within ? high : 0, from + 64);
    float* out = to + y * kSide;
    for (std::size_t i = 0; i < 6; ++i) {
      const __m512i values = _mm512_maskz_permutex2var_epi8(kLowest, a, order[i], b);
      const __m512 result = _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(values), scale[i / 2]), shift[i / 2]);
      float* place = out + i / 2 * kCifarPlane + i % 2 * 16;
      if constexpr (kNonTemporal) {
        _mm512_stream_ps(place, result);
      } else {
        _mm512_storeu_ps(place, result);
      }
    }
  }
}

void augment_vbmi(const std::uint8_t* image, const CifarWindow& window, const CifarNormal& normal,
                  const std::uint8_t* next, float* to) {
  (is_aligned(to) ? augment_rows_vbmi<true> : augment_rows_vbmi<false>)(image, window, normal, next, to);
}

// --- AVX2: the window's rows between zeros on the stack, then 16 pixels at a time through byte shuffles ---

struct Canvas {
  static constexpr int kBorder = 3 * kCifarPad, kStride = kRowBytes + 2 * kBorder;
  alignas(32) std::uint8_t bytes[kSide * kStride];

  HEADRACE_AVX2 Canvas(const std::uint8_t* image, int top) {
    for (int y = 0; y < kSide; ++y) {
      std::uint8_t* row = bytes + y * kStride;
      const bool within = y + top >= 0 && y + top < kSide;
      if (within) {
        std::memset(row, 0, kBorder);
        std::memcpy(row + kBorder, image + (y + top) * kRowBytes, kRowBytes);
        std::memset(row + kBorder + kRowBytes, 0, kBorder);
      } else {
        std::memset(row, 0, kStride);
      }
    }
  }
};

// For each channel and each third of 48 bytes a byte shuffle; 0x80 where the byte comes from another third.
using Shuffles = std::array<std::array<std::array<std::uint8_t, 16>, 3>, 3>;
constexpr Shuffles shuffles(bool mirrored) {
  Shuffles all{};
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t x = 0; x < 16; ++x) {
      const std::size_t from = 3 * (mirrored ? 15 - x : x) + channel;
      for (std::size_t part = 0; part < 3; ++part) {
        all[channel][part][x] = static_cast<std::uint8_t>(from / 16 == part ? from % 16 : 0x80);
      }
    }
  }
  return all;
}
alignas(16) constexpr Shuffles kShuffles[] = {shuffles(false), shuffles(true)};

HEADRACE_AVX2 [[gnu::always_inline]] inline void store_eight(__m128i values, float scale, float shift, float* to) {
  const __m256 floats = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(values));
  _mm256_storeu_ps(to, _mm256_add_ps(_mm256_mul_ps(floats, _mm256_set1_ps(scale)), _mm256_set1_ps(shift)));
}

// Rows that are made together and then written one plane after another: non-temporal stores are fast in runs.
constexpr int kRunRows = 8, kRun = kRunRows * kSide;

HEADRACE_AVX2 void write_runs(const float (&runs)[3][kRun], float* to) {
  for (int channel = 0; channel < 3; ++channel) {
    for (int i = 0; i < kRun; i += 8)
      _mm256_stream_ps(to + channel * kCifarPlane + i, _mm256_load_ps(runs[channel] + i));
  }
}

template <bool kNonTemporal>
HEADRACE_AVX2 void augment_rows_avx2(const std::uint8_t* image, const CifarWindow& window,
                                     const CifarNormal& normal, const std::uint8_t* next, float* to) {
  const Canvas canvas(image, window.top);
  const Shuffles& order = kShuffles[window.mirrored ? 1 : 0];
  FetchAhead ahead = fetching(next);
  alignas(64) float runs[3][kRun];
  for (int y = 0; y < kSide; ++y) {
    ahead.fetch_piece();
    const std::uint8_t* row = canvas.bytes + y * Canvas::kStride + Canvas::kBorder + 3 * window.left;
    for (int x = 0; x < kSide; x += 16) {
      const auto* thirds = reinterpret_cast<const __m128i*>(row + 3 * x);
      const int at = y * kSide + (window.mirrored ? 16 - x : x);
      for (std::size_t channel = 0; channel < 3; ++channel) {
        __m128i values = _mm_setzero_si128();
        for (std::size_t part = 0; part < 3; ++part) {
          const auto shuffle = _mm_load_si128(reinterpret_cast<const __m128i*>(order[channel][part].data()));
          values = _mm_or_si128(values, _mm_shuffle_epi8(_mm_loadu_si128(thirds + part), shuffle));
        }
        float* place = kNonTemporal ? runs[channel] + at % kRun : to + channel * kCifarPlane + at;
        store_eight(values, normal.scale[channel], normal.shift[channel], place);
        store_eight(_mm_srli_si128(values, 8), normal.scale[channel], normal.shift[channel], place + 8);
      }
    }
    if (kNonTemporal && (y + 1) % kRunRows == 0) write_runs(runs, to + (y + 1 - kRunRows) * kSide);
  }
}

void augment_avx2(const std::uint8_t* image, const CifarWindow& window, const CifarNormal& normal,
                  const std::uint8_t* next, float* to) {
  (is_aligned(to) ? augment_rows_avx2<true> : augment_rows_avx2<false>)(image, window, normal, next, to);
}

#undef HEADRACE_AVX2
#undef HEADRACE_VBMI

#endif

std::vector<CifarForm> runnable_forms() {
  std::vector<CifarForm> forms;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl")) {
    forms.push_back({"AVX-512", augment_vbmi});
  }
  if (__builtin_cpu_supports("avx2")) forms.push_back({"AVX2", augment_avx2});
#endif
  forms.push_back({"portable", augment_portable});
  return forms;
}

}  // namespace

CifarNormal::CifarNormal() {
  for (std::size_t c = 0; c < 3; ++c) {
    const double mean = kCifarMean[c], std = kCifarStd[c];
    scale[c] = static_cast<float>(1 / (255 * std));
    shift[c] = static_cast<float>(-mean / std);
  }
}

std::span<const CifarForm> cifar_forms() {
  static const std::vector<CifarForm> forms = runnable_forms();
  return forms;
}

void finish_cifar() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace headrace::tools

#if defined(__x86_64__)
#pragma GCC diagnostic pop
#endif
