#include "headrace/pipeline/stages/rgb_kernels.h"

#include <array>

#if defined(__x86_64__)
#include <immintrin.h>
// g++ 12 takes the intrinsics' own undefined vectors for a mistake.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace headrace {
namespace {

// Columns [begin, end) of one row, counted as stored: the part that fills no vector.
void planes_part(const RgbImage& image, std::int64_t y, std::int64_t begin, std::int64_t end, const float* scale,
                 const float* shift, float* to) {
  const std::uint8_t* from = image.first + y * image.stride;
  const std::int64_t plane = image.height * image.width;
  for (std::int64_t x = begin; x < end; ++x) {
    const std::int64_t at = image.direction == Direction::kMirrored ? image.width - 1 - x : x;
    for (int c = 0; c < 3; ++c) {
      to[c * plane + y * image.width + at] = static_cast<float>(from[3 * x + c]) * scale[c] + shift[c];
    }
  }
}

void pixels_part(const RgbImage& image, std::int64_t y, std::int64_t begin, std::int64_t end, const float* scale,
                 const float* shift, float* to) {
  const std::uint8_t* from = image.first + y * image.stride;
  for (std::int64_t x = begin; x < end; ++x) {
    const std::int64_t at = image.direction == Direction::kMirrored ? image.width - 1 - x : x;
    for (int c = 0; c < 3; ++c) {
      to[3 * (y * image.width + at) + c] = static_cast<float>(from[3 * x + c]) * scale[c] + shift[c];
    }
  }
}

void mirror_part(const RgbImage& image, std::int64_t y, std::int64_t begin, std::int64_t end, std::uint8_t* to) {
  const std::uint8_t* from = image.first + y * image.stride;
  for (std::int64_t x = begin; x < end; ++x) {
    for (int c = 0; c < 3; ++c) to[3 * (y * image.width + image.width - 1 - x) + c] = from[3 * x + c];
  }
}

void to_planes_portable(const RgbImage& image, const float* scale, const float* shift, Stores /*stores*/,
                        float* to) {
  for (std::int64_t y = 0; y < image.height; ++y) planes_part(image, y, 0, image.width, scale, shift, to);
}

void to_pixels_portable(const RgbImage& image, const float* scale, const float* shift, Stores /*stores*/,
                        float* to) {
  for (std::int64_t y = 0; y < image.height; ++y) pixels_part(image, y, 0, image.width, scale, shift, to);
}

void mirror_portable(const RgbImage& image, std::uint8_t* to) {
  for (std::int64_t y = 0; y < image.height; ++y) mirror_part(image, y, 0, image.width, to);
}

#if defined(__x86_64__)

#define HEADRACE_AVX2 [[gnu::target("avx2")]]
#define HEADRACE_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]]

constexpr std::int64_t kLanes = 16;  // pixels at a time: 48 bytes, three vectors

// Where the bytes of a result of 16 come from: for each of the three source vectors a byte shuffle, 0x80 where the
// byte comes from another one.
using Shuffle = std::array<std::array<std::uint8_t, 16>, 3>;

template <typename SourceOf>
constexpr Shuffle shuffle_of(const SourceOf& source_of) {
  Shuffle shuffle{};
  for (int i = 0; i < 16; ++i) {
    for (int part = 0; part < 3; ++part) {
      const int at = source_of(i);
      shuffle[static_cast<std::size_t>(part)][static_cast<std::size_t>(i)] =
          static_cast<std::uint8_t>(at / 16 == part ? at % 16 : 0x80);
    }
  }
  return shuffle;
}

// The 16 values of a channel.
template <Direction kDirection, int kChannel>
constexpr Shuffle kChannelShuffle = shuffle_of([](int i) {
  return 3 * (kDirection == Direction::kMirrored ? 15 - i : i) + kChannel;
});

// A third of the 16 pixels, from right to left where mirrored.
template <Direction kDirection, int kPart>
constexpr Shuffle kPartShuffle = shuffle_of([](int i) {
  const int at = 16 * kPart + i;
  return kDirection == Direction::kMirrored ? 3 * (15 - at / 3) + at % 3 : at;
});

struct Pixels16 {
  __m128i part[3];
};

HEADRACE_AVX2 [[gnu::always_inline]] inline Pixels16 load(const std::uint8_t* from) {
  const auto* vectors = reinterpret_cast<const __m128i*>(from);
  return {{_mm_loadu_si128(vectors), _mm_loadu_si128(vectors + 1), _mm_loadu_si128(vectors + 2)}};
}

HEADRACE_AVX2 [[gnu::always_inline]] inline __m128i pick(const Pixels16& pixels, const Shuffle& shuffle) {
  const auto part = [&](std::size_t i) __attribute__((target("avx2"), always_inline)) {
    const auto mask = _mm_loadu_si128(reinterpret_cast<const __m128i*>(shuffle[i].data()));
    return _mm_shuffle_epi8(pixels.part[i], mask);
  };
  return _mm_or_si128(part(0), _mm_or_si128(part(1), part(2)));
}

// Streamed stores want whole vectors at their own multiples; every row and plane begins at one where the first
// does.
bool can_stream(const RgbImage& image, const float* to) noexcept {
  return reinterpret_cast<std::uintptr_t>(to) % 64 == 0 && image.width % kLanes == 0;
}

// to[i] = values[i] * scale + shift
template <Stores kStores>
HEADRACE_AVX2 [[gnu::always_inline]] inline void store_avx2(__m128i values, const __m256 (&scale)[2],
                                                            const __m256 (&shift)[2], float* to) {
  const __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(values));
  const __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(values, 8)));
  const __m256 first = _mm256_add_ps(_mm256_mul_ps(low, scale[0]), shift[0]);
  const __m256 second = _mm256_add_ps(_mm256_mul_ps(high, scale[1]), shift[1]);
  if constexpr (kStores == Stores::kStreamed) {
    _mm256_stream_ps(to, first);
    _mm256_stream_ps(to + 8, second);
  } else {
    _mm256_storeu_ps(to, first);
    _mm256_storeu_ps(to + 8, second);
  }
}

template <Stores kStores>
HEADRACE_AVX512 [[gnu::always_inline]] inline void store_avx512(__m128i values, __m512 scale, __m512 shift,
                                                                float* to) {
  const __m512 floats = _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(values));
  const __m512 result = _mm512_add_ps(_mm512_mul_ps(floats, scale), shift);
  if constexpr (kStores == Stores::kStreamed) {
    _mm512_stream_ps(to, result);
  } else {
    _mm512_storeu_ps(to, result);
  }
}

template <Direction kDirection, Stores kStores>
HEADRACE_AVX2 void planes_avx2(const RgbImage& image, const float* scale, const float* shift, float* to) {
  const std::int64_t plane = image.height * image.width, whole = image.width / kLanes * kLanes;
  const __m256 scales[3] = {_mm256_set1_ps(scale[0]), _mm256_set1_ps(scale[1]), _mm256_set1_ps(scale[2])};
  const __m256 shifts[3] = {_mm256_set1_ps(shift[0]), _mm256_set1_ps(shift[1]), _mm256_set1_ps(shift[2])};
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < whole; x += kLanes) {
      const Pixels16 pixels = load(image.first + y * image.stride + 3 * x);
      float* out = to + y * image.width + (kDirection == Direction::kMirrored ? image.width - x - kLanes : x);
      store_avx2<kStores>(pick(pixels, kChannelShuffle<kDirection, 0>), {scales[0], scales[0]},
                          {shifts[0], shifts[0]}, out);
      store_avx2<kStores>(pick(pixels, kChannelShuffle<kDirection, 1>), {scales[1], scales[1]},
                          {shifts[1], shifts[1]}, out + plane);
      store_avx2<kStores>(pick(pixels, kChannelShuffle<kDirection, 2>), {scales[2], scales[2]},
                          {shifts[2], shifts[2]}, out + 2 * plane);
    }
    planes_part(image, y, whole, image.width, scale, shift, to);
  }
}

template <Direction kDirection, Stores kStores>
HEADRACE_AVX512 void planes_avx512(const RgbImage& image, const float* scale, const float* shift, float* to) {
  const std::int64_t plane = image.height * image.width, whole = image.width / kLanes * kLanes;
  const __m512 scales[3] = {_mm512_set1_ps(scale[0]), _mm512_set1_ps(scale[1]), _mm512_set1_ps(scale[2])};
  const __m512 shifts[3] = {_mm512_set1_ps(shift[0]), _mm512_set1_ps(shift[1]), _mm512_set1_ps(shift[2])};
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < whole; x += kLanes) {
      const Pixels16 pixels = load(image.first + y * image.stride + 3 * x);
      float* out = to + y * image.width + (kDirection == Direction::kMirrored ? image.width - x - kLanes : x);
      store_avx512<kStores>(pick(pixels, kChannelShuffle<kDirection, 0>), scales[0], shifts[0], out);
      store_avx512<kStores>(pick(pixels, kChannelShuffle<kDirection, 1>), scales[1], shifts[1], out + plane);
      store_avx512<kStores>(pick(pixels, kChannelShuffle<kDirection, 2>), scales[2], shifts[2], out + 2 * plane);
    }
    planes_part(image, y, whole, image.width, scale, shift, to);
  }
}

template <Direction kDirection, Stores kStores>
HEADRACE_AVX2 void pixels_avx2(const RgbImage& image, const float* scale, const float* shift, float* to) {
  const std::int64_t whole = image.width / kLanes * kLanes;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < whole; x += kLanes) {
      const Pixels16 pixels = load(image.first + y * image.stride + 3 * x);
      const std::int64_t at = kDirection == Direction::kMirrored ? image.width - x - kLanes : x;
      float* out = to + 3 * (y * image.width + at);
      const auto store = [&](std::int64_t part, __m128i values) __attribute__((target("avx2"), always_inline)) {
        const float* s = scale + 16 * part;
        const float* t = shift + 16 * part;
        store_avx2<kStores>(values, {_mm256_loadu_ps(s), _mm256_loadu_ps(s + 8)},
                            {_mm256_loadu_ps(t), _mm256_loadu_ps(t + 8)}, out + 16 * part);
      };
      store(0, pick(pixels, kPartShuffle<kDirection, 0>));
      store(1, pick(pixels, kPartShuffle<kDirection, 1>));
      store(2, pick(pixels, kPartShuffle<kDirection, 2>));
    }
    pixels_part(image, y, whole, image.width, scale, shift, to);
  }
}

HEADRACE_AVX2 void mirror_avx2(const RgbImage& image, std::uint8_t* to) {
  const std::int64_t whole = image.width / kLanes * kLanes;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < whole; x += kLanes) {
      const Pixels16 pixels = load(image.first + y * image.stride + 3 * x);
      auto* out = reinterpret_cast<__m128i*>(to + 3 * (y * image.width + image.width - x - kLanes));
      _mm_storeu_si128(out, pick(pixels, kPartShuffle<Direction::kMirrored, 0>));
      _mm_storeu_si128(out + 1, pick(pixels, kPartShuffle<Direction::kMirrored, 1>));
      _mm_storeu_si128(out + 2, pick(pixels, kPartShuffle<Direction::kMirrored, 2>));
    }
    mirror_part(image, y, whole, image.width, to);
  }
}

using Kernel = void (*)(const RgbImage&, const float*, const float*, float*);
// One kernel in its four forms.
struct Forms {
  Kernel forward, mirrored, forward_streamed, mirrored_streamed;

  void run(const RgbImage& image, const float* scale, const float* shift, Stores stores, float* to) const {
    const bool turned = image.direction == Direction::kMirrored;
    if (stores == Stores::kCached || !can_stream(image, to)) {
      return (turned ? mirrored : forward)(image, scale, shift, to);
    }
    (turned ? mirrored_streamed : forward_streamed)(image, scale, shift, to);
  }
};

#define HEADRACE_FORMS(kernel)                                                                           \
  {                                                                                                      \
    kernel<Direction::kAsStored, Stores::kCached>, kernel<Direction::kMirrored, Stores::kCached>,        \
        kernel<Direction::kAsStored, Stores::kStreamed>, kernel<Direction::kMirrored, Stores::kStreamed> \
  }

void to_planes_avx2(const RgbImage& image, const float* scale, const float* shift, Stores stores, float* to) {
  static constexpr Forms kForms = HEADRACE_FORMS(planes_avx2);
  kForms.run(image, scale, shift, stores, to);
}

void to_planes_avx512(const RgbImage& image, const float* scale, const float* shift, Stores stores, float* to) {
  static constexpr Forms kForms = HEADRACE_FORMS(planes_avx512);
  kForms.run(image, scale, shift, stores, to);
}

void to_pixels_avx2(const RgbImage& image, const float* scale, const float* shift, Stores stores, float* to) {
  static constexpr Forms kForms = HEADRACE_FORMS(pixels_avx2);
  kForms.run(image, scale, shift, stores, to);
}

#undef HEADRACE_FORMS

#endif

RgbKernels choose() noexcept {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (avx512) return {to_planes_avx512, to_pixels_avx2, mirror_avx2};
  if (__builtin_cpu_supports("avx2")) return {to_planes_avx2, to_pixels_avx2, mirror_avx2};
#endif
  return portable_rgb_kernels();
}

}  // namespace

const RgbKernels& portable_rgb_kernels() noexcept {
  static constexpr RgbKernels kernels{to_planes_portable, to_pixels_portable, mirror_portable};
  return kernels;
}

const RgbKernels& rgb_kernels() noexcept {
  static const RgbKernels best = choose();
  return best;
}

}  // namespace headrace
