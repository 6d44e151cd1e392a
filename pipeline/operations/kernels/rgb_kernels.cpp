#include "headrace/pipeline/operations/kernels/rgb_kernels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "headrace/devices/base/prefetch.h"
#include "headrace/pipeline/operations/kernels/rgb_planes_vbmi.h"

#if defined(__x86_64__)
#include <immintrin.h>
// g++ 12 mistakenly warns about the intrinsics' own undefined vectors.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace headrace {
namespace {

// The rows of a rectangle with the zeros of its border.
class Rows {
 public:
  explicit Rows(const RgbImage& image) noexcept : image_(image), bordered_(!image.border.empty()) {}

  // Returns a row, valid until the next call.
  const std::uint8_t* row(std::int64_t y) noexcept {
    const RgbBorder& border = image_.border;
    const std::uint8_t* stored = image_.first + (y - border.above) * image_.stride;
    if (!bordered_) return stored;
    if (y < border.above || y >= image_.height - border.below) return kZeros;
    const auto bytes = [](std::int64_t pixels) { return static_cast<std::size_t>(3 * pixels); };
    const std::int64_t end = image_.width - border.right;
    std::memset(line_, 0, bytes(border.left));
    std::memcpy(line_ + bytes(border.left), stored, bytes(end - border.left));
    std::memset(line_ + bytes(end), 0, bytes(border.right));
    return line_;
  }

 private:
  static constexpr std::uint8_t kZeros[3 * kMaxBordered] = {};

  const RgbImage& image_;
  bool bordered_;
  std::uint8_t line_[3 * kMaxBordered];
};

// Converts columns [begin, end) of one row, counted as stored: the part that fills no vector.
void planes_part(const RgbImage& image, const std::uint8_t* from, std::int64_t y, std::int64_t begin,
                 std::int64_t end, const float* scale, const float* shift, float* to) {
  const std::int64_t plane = image.height * image.width;
  for (std::int64_t x = begin; x < end; ++x) {
    const std::int64_t at = image.direction == Direction::kMirrored ? image.width - 1 - x : x;
    for (int c = 0; c < 3; ++c) {
      to[c * plane + y * image.width + at] = static_cast<float>(from[3 * x + c]) * scale[c] + shift[c];
    }
  }
}

void pixels_part(const RgbImage& image, const std::uint8_t* from, std::int64_t y, std::int64_t begin,
                 std::int64_t end, const float* scale, const float* shift, float* to) {
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

void to_planes_portable(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                        float* to) {
  Rows rows(image);
  FetchAhead ahead(traffic.ahead, image.height);
  for (std::int64_t y = 0; y < image.height; ++y) {
    ahead.fetch_piece();
    planes_part(image, rows.row(y), y, 0, image.width, scale, shift, to);
  }
}

void to_pixels_portable(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                        float* to) {
  Rows rows(image);
  FetchAhead ahead(traffic.ahead, image.height);
  for (std::int64_t y = 0; y < image.height; ++y) {
    ahead.fetch_piece();
    pixels_part(image, rows.row(y), y, 0, image.width, scale, shift, to);
  }
}

void mirror_portable(const RgbImage& image, std::uint8_t* to) {
  for (std::int64_t y = 0; y < image.height; ++y) mirror_part(image, y, 0, image.width, to);
}

#if defined(__x86_64__)

#define HEADRACE_AVX2 [[gnu::target("avx2")]]
#define HEADRACE_AVX512 [[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]]

constexpr std::int64_t kLanes = 16;  // pixels at a time: 48 bytes, three vectors

// Sources of the bytes of a result of 16: for each of the three source vectors a byte shuffle, 0x80 if the byte
// comes from another one.
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

// Returns the 16 values of a channel.
template <Direction kDirection, int kChannel>
constexpr Shuffle kChannelShuffle = shuffle_of([](int i) {
  return 3 * (kDirection == Direction::kMirrored ? 15 - i : i) + kChannel;
});

// Returns a third of the 16 pixels, from right to left if mirrored.
template <Direction kDirection, int kPart>
constexpr Shuffle kPartShuffle = shuffle_of([](int i) {
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

HEADRACE_AVX2 [[gnu::always_inline]] inline __m128i pick(const Pixels16& pixels, const Shuffle& shuffle) {
  const auto part = [&](std::size_t i) __attribute__((target("avx2"), always_inline)) {
    const auto mask = _mm_loadu_si128(reinterpret_cast<const __m128i*>(shuffle[i].data()));
    return _mm_shuffle_epi8(pixels.part[i], mask);
  };
  return _mm_or_si128(part(0), _mm_or_si128(part(1), part(2)));
}

// Returns whether stores can be non-temporal: they need whole aligned vectors; every row and plane is aligned if
// the first one is.
bool can_stream(const RgbImage& image, const float* to) noexcept {
  return reinterpret_cast<std::uintptr_t>(to) % 64 == 0 && image.width % kLanes == 0;
}

// Where AVX2 kernels write: kPlanes arrays of floats, each from its front to its end, 16 floats at a time. What is
// stored past the caches is gathered first and then written in runs: on AMD's Zen 3 single non-temporal stores
// between loads take three times as long as the same stores without them.
template <Stores kStores, int kPlanes>
class FloatsOut {
 public:
  FloatsOut(float* to, std::int64_t plane) noexcept : to_(to), plane_(plane) {}

  // to[at + i] = values[i] * scale[i] + shift[i], in this plane. With non-temporal stores followed by advance().
  HEADRACE_AVX2 [[gnu::always_inline]] void put(int plane, std::int64_t at, __m128i values,
                                                const __m256 (&scale)[2], const __m256 (&shift)[2]) noexcept {
    const __m256 low = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(values));
    const __m256 high = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(values, 8)));
    float* const out = kStores == Stores::kNonTemporal ? run_[plane] + (at - begin_) : to_ + plane * plane_ + at;
    _mm256_storeu_ps(out, _mm256_add_ps(_mm256_mul_ps(low, scale[0]), shift[0]));
    _mm256_storeu_ps(out + 8, _mm256_add_ps(_mm256_mul_ps(high, scale[1]), shift[1]));
  }

  // Says that all planes are complete up to `end`.
  HEADRACE_AVX2 [[gnu::always_inline]] void advance(std::int64_t end) noexcept {
    if (kStores == Stores::kNonTemporal && (end - begin_ == kRun || end == plane_)) write_run(end);
  }

 private:
  static constexpr std::int64_t kRun = 768 / kPlanes;  // 3 KiB altogether; a multiple of 48 floats

  HEADRACE_AVX2 [[gnu::noinline]] void write_run(std::int64_t end) noexcept {
    for (int plane = 0; plane < kPlanes; ++plane) {
      float* const out = to_ + plane * plane_ + begin_;
      for (std::int64_t i = 0; i < end - begin_; i += 8)
        _mm256_stream_ps(out + i, _mm256_load_ps(run_[plane] + i));
    }
    begin_ = end;
  }

  float* to_;
  std::int64_t plane_;      // floats of each
  std::int64_t begin_ = 0;  // of the run
  alignas(
      64) float run_[kStores == Stores::kNonTemporal ? kPlanes : 1][kStores == Stores::kNonTemporal ? kRun : 1];
};

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

template <Direction kDirection>
constexpr std::int64_t place_of(const RgbImage& image, std::int64_t x) {
  return kDirection == Direction::kMirrored ? image.width - x - kLanes : x;
}

// Returns the stored column of the i-th 16 of `whole` columns in the order in which they are written.
template <Direction kDirection>
constexpr std::int64_t column_of(std::int64_t whole, std::int64_t i) {
  return kDirection == Direction::kMirrored ? whole - i - kLanes : i;
}

// Reads 16 pixels of a row at a time, and with kBordered those of the border as zeros: what a row's vectors hold
// beside the picture is masked. Only a row beside which the picture ends is copied.
template <bool kBordered>
class PixelLoads {
 public:
  HEADRACE_AVX2 [[gnu::always_inline]] explicit PixelLoads(const RgbImage& image) noexcept : rows_(image) {
    if constexpr (kBordered) {
      const RgbBorder& border = image.border;
      for (std::int64_t x = 0; x < image.width; x += kLanes) {
        const auto bytes_to = [&](std::int64_t column) {
          return 3 * std::clamp<std::int64_t>(column - x, 0, kLanes);
        };
        masks_[x / kLanes] = both(load_pixels(kOnes + 48 - bytes_to(border.left)),
                                  load_pixels(kOnes + 96 - bytes_to(image.width - border.right)));
      }
      const auto rows_of = [&](std::int64_t pixels) { return (3 * pixels + image.stride - 1) / image.stride; };
      begin_ = border.above + rows_of(border.left);
      end_ = image.height - border.below - rows_of(border.right);
      corner_ = image.first - border.above * image.stride - 3 * border.left;
      stride_ = image.stride;
    }
  }

  [[gnu::always_inline]] const std::uint8_t* row(std::int64_t y) noexcept {
    return kBordered && y >= begin_ && y < end_ ? corner_ + y * stride_ : rows_.row(y);
  }

  HEADRACE_AVX2 [[gnu::always_inline]] Pixels16 load(const std::uint8_t* row, std::int64_t x) const noexcept {
    const Pixels16 pixels = load_pixels(row + 3 * x);
    if constexpr (kBordered) return both(pixels, masks_[x / kLanes]);
    return pixels;
  }

 private:
  static constexpr std::array<std::uint8_t, 144> kMaskBytes = [] {
    std::array<std::uint8_t, 144> bytes{};
    for (std::size_t i = 48; i < 96; ++i) bytes[i] = 0xFF;
    return bytes;
  }();
  static constexpr const std::uint8_t* kOnes = kMaskBytes.data();  // 48 zeros, 48 ones, 48 zeros

  HEADRACE_AVX2 [[gnu::always_inline]] static Pixels16 both(const Pixels16& a, const Pixels16& b) noexcept {
    return {{_mm_and_si128(a.part[0], b.part[0]), _mm_and_si128(a.part[1], b.part[1]),
             _mm_and_si128(a.part[2], b.part[2])}};
  }

  Rows rows_;
  std::int64_t begin_ = 0, end_ = 0;  // of the rows that are read where they are
  const std::uint8_t* corner_ = nullptr;
  std::int64_t stride_ = 0;
  Pixels16 masks_[kBordered ? kMaxBordered / kLanes : 1];
};

template <Direction kDirection, Stores kStores, bool kBordered>
HEADRACE_AVX2 void planes_avx2(const RgbImage& image, const float* scale, const float* shift, FetchAhead ahead,
                               float* to) {
  const std::int64_t width = image.width, whole = width / kLanes * kLanes;
  const __m256 scales[3] = {_mm256_set1_ps(scale[0]), _mm256_set1_ps(scale[1]), _mm256_set1_ps(scale[2])};
  const __m256 shifts[3] = {_mm256_set1_ps(shift[0]), _mm256_set1_ps(shift[1]), _mm256_set1_ps(shift[2])};
  PixelLoads<kBordered> loads(image);
  FloatsOut<kStores, 3> out(to, image.height * width);
  for (std::int64_t y = 0; y < image.height; ++y) {
    const std::uint8_t* from = loads.row(y);
    ahead.fetch_piece();
    for (std::int64_t i = 0; i < whole; i += kLanes) {
      const std::int64_t x = column_of<kDirection>(whole, i), at = y * width + place_of<kDirection>(image, x);
      const Pixels16 pixels = loads.load(from, x);
      out.put(0, at, pick(pixels, kChannelShuffle<kDirection, 0>), {scales[0], scales[0]}, {shifts[0], shifts[0]});
      out.put(1, at, pick(pixels, kChannelShuffle<kDirection, 1>), {scales[1], scales[1]}, {shifts[1], shifts[1]});
      out.put(2, at, pick(pixels, kChannelShuffle<kDirection, 2>), {scales[2], scales[2]}, {shifts[2], shifts[2]});
      out.advance(at + kLanes);
    }
    planes_part(image, from, y, whole, image.width, scale, shift, to);
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
  const std::int64_t whole = image.width / kLanes * kLanes;
  const PlaneStores planes(image, scale, shift);
  Rows rows(image);
  for (std::int64_t y = 0; y < image.height; ++y) {
    const std::uint8_t* from = rows.row(y);
    ahead.fetch_piece();
    for (std::int64_t x = 0; x < whole; x += kLanes) {
      planes.template put<kDirection, kStores>(load_pixels(from + 3 * x),
                                               to + y * image.width + place_of<kDirection>(image, x));
    }
    planes_part(image, from, y, whole, image.width, scale, shift, to);
  }
}

// Masks the bytes of 16 pixels that lie within the picture.
struct Mask48 {
  std::uint64_t bits = 0;

  static Mask48 of(const RgbImage& image, std::int64_t x) noexcept {
    const auto bytes_to = [&](std::int64_t column) { return 3 * std::clamp<std::int64_t>(column - x, 0, kLanes); };
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
  Mask48 masks[kMaxBordered / kLanes];
  for (std::int64_t x = 0; x < image.width; x += kLanes) masks[x / kLanes] = Mask48::of(image, x);
  const std::uint8_t* corner = image.first - 3 * border.left;
  for (std::int64_t y = 0; y < image.height; ++y) {
    const bool within = y >= border.above && y < image.height - border.below;
    ahead.fetch_piece();
    for (std::int64_t x = 0; x < image.width; x += kLanes) {
      const Mask48 mask = within ? masks[x / kLanes] : Mask48{};
      planes.template put<kDirection, kStores>(
          load_within(mask, corner + (y - border.above) * image.stride + 3 * x),
          to + y * image.width + place_of<kDirection>(image, x));
    }
  }
}

template <Direction kDirection, Stores kStores, bool kBordered>
HEADRACE_AVX2 void pixels_avx2(const RgbImage& image, const float* scale, const float* shift, FetchAhead ahead,
                               float* to) {
  const std::int64_t width = image.width, whole = width / kLanes * kLanes;
  PixelLoads<kBordered> loads(image);
  FloatsOut<kStores, 1> out(to, 3 * image.height * width);
  for (std::int64_t y = 0; y < image.height; ++y) {
    const std::uint8_t* from = loads.row(y);
    ahead.fetch_piece();
    for (std::int64_t i = 0; i < whole; i += kLanes) {
      const std::int64_t x = column_of<kDirection>(whole, i),
                         at = 3 * (y * width + place_of<kDirection>(image, x));
      const Pixels16 pixels = loads.load(from, x);
      const auto put = [&](std::int64_t part, __m128i values) __attribute__((target("avx2"), always_inline)) {
        const float* s = scale + 16 * part;
        const float* t = shift + 16 * part;
        out.put(0, at + 16 * part, values, {_mm256_loadu_ps(s), _mm256_loadu_ps(s + 8)},
                {_mm256_loadu_ps(t), _mm256_loadu_ps(t + 8)});
      };
      put(0, pick(pixels, kPartShuffle<kDirection, 0>));
      put(1, pick(pixels, kPartShuffle<kDirection, 1>));
      put(2, pick(pixels, kPartShuffle<kDirection, 2>));
      out.advance(at + 3 * kLanes);
    }
    pixels_part(image, from, y, whole, image.width, scale, shift, to);
  }
}

HEADRACE_AVX2 void mirror_avx2(const RgbImage& image, std::uint8_t* to) {
  const std::int64_t whole = image.width / kLanes * kLanes;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < whole; x += kLanes) {
      const Pixels16 pixels = load_pixels(image.first + y * image.stride + 3 * x);
      auto* out = reinterpret_cast<__m128i*>(to + 3 * (y * image.width + image.width - x - kLanes));
      _mm_storeu_si128(out, pick(pixels, kPartShuffle<Direction::kMirrored, 0>));
      _mm_storeu_si128(out + 1, pick(pixels, kPartShuffle<Direction::kMirrored, 1>));
      _mm_storeu_si128(out + 2, pick(pixels, kPartShuffle<Direction::kMirrored, 2>));
    }
    mirror_part(image, y, whole, image.width, to);
  }
}

using Kernel = void (*)(const RgbImage&, const float*, const float*, FetchAhead, float*);
// One kernel in its four variants.
struct Forms {
  Kernel forward, mirrored, forward_streamed, mirrored_streamed;

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
#define HEADRACE_FORMS(kernel, ...)                                                    \
  {                                                                                    \
    kernel<Direction::kAsStored, Stores::kCached __VA_OPT__(, ) __VA_ARGS__>,          \
        kernel<Direction::kMirrored, Stores::kCached __VA_OPT__(, ) __VA_ARGS__>,      \
        kernel<Direction::kAsStored, Stores::kNonTemporal __VA_OPT__(, ) __VA_ARGS__>, \
        kernel<Direction::kMirrored, Stores::kNonTemporal __VA_OPT__(, ) __VA_ARGS__>  \
  }

// Returns whether the border can be masked: every vector of a row is whole.
bool can_mask(const RgbImage& image) noexcept { return !image.border.empty() && image.width % kLanes == 0; }

void to_planes_avx2(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                    float* to) {
  static constexpr Forms kForms = HEADRACE_FORMS(planes_avx2, false);
  static constexpr Forms kBordered = HEADRACE_FORMS(planes_avx2, true);
  (can_mask(image) ? kBordered : kForms).run(image, scale, shift, traffic, to);
}

void to_planes_avx512(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                      float* to) {
  static constexpr Forms kForms = HEADRACE_FORMS(planes_avx512);
  static constexpr Forms kBordered = HEADRACE_FORMS(bordered_planes_avx512);
  (can_mask(image) ? kBordered : kForms).run(image, scale, shift, traffic, to);
}

void to_planes_permuted(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                        float* to) {
  (image.width % kPermutedPixels == 0 ? to_planes_vbmi : to_planes_avx512)(image, scale, shift, traffic, to);
}

void to_pixels_avx2(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                    float* to) {
  static constexpr Forms kForms = HEADRACE_FORMS(pixels_avx2, false);
  static constexpr Forms kBordered = HEADRACE_FORMS(pixels_avx2, true);
  (can_mask(image) ? kBordered : kForms).run(image, scale, shift, traffic, to);
}

#undef HEADRACE_FORMS
#undef HEADRACE_AVX2
#undef HEADRACE_AVX512

#endif

std::vector<RgbKernels> find_runnable() {
  std::vector<RgbKernels> found;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx512 = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (avx512 && can_permute_bytes()) found.push_back({to_planes_permuted, to_pixels_avx2, mirror_avx2});
  if (avx512) found.push_back({to_planes_avx512, to_pixels_avx2, mirror_avx2});
  if (__builtin_cpu_supports("avx2")) found.push_back({to_planes_avx2, to_pixels_avx2, mirror_avx2});
#endif
  found.push_back(portable_rgb_kernels());
  return found;
}

}  // namespace

const RgbKernels& portable_rgb_kernels() noexcept {
  static constexpr RgbKernels kernels{to_planes_portable, to_pixels_portable, mirror_portable};
  return kernels;
}

std::span<const RgbKernels> runnable_rgb_kernels() {
  static const std::vector<RgbKernels> found = find_runnable();
  return found;
}

const RgbKernels& rgb_kernels() noexcept {
  static const RgbKernels best = runnable_rgb_kernels().front();
  return best;
}

}  // namespace headrace

#if defined(__x86_64__)
#pragma GCC diagnostic pop
#endif
