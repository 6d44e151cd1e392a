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

// Returns the stored column of the i-th 16 of `whole` columns in the order in which they are written.
template <Direction kDirection>
constexpr std::int64_t column_of(std::int64_t whole, std::int64_t i) {
  return kDirection == Direction::kMirrored ? whole - i - kRgbLanes : i;
}

// Reads 16 pixels of a row at a time, and with kBordered those of the border as zeros: what a row's vectors hold
// beside the picture is masked. Only a row beside which the picture ends is copied.
template <bool kBordered>
class PixelLoads {
 public:
  HEADRACE_AVX2 [[gnu::always_inline]] explicit PixelLoads(const RgbImage& image) noexcept : rows_(image) {
    if constexpr (kBordered) {
      const RgbBorder& border = image.border;
      for (std::int64_t x = 0; x < image.width; x += kRgbLanes) {
        const auto bytes_to = [&](std::int64_t column) {
          return 3 * std::clamp<std::int64_t>(column - x, 0, kRgbLanes);
        };
        masks_[x / kRgbLanes] = both(load_pixels(kOnes + 48 - bytes_to(border.left)),
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
    if constexpr (kBordered) return both(pixels, masks_[x / kRgbLanes]);
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

  RgbRows rows_;
  std::int64_t begin_ = 0, end_ = 0;  // of the rows that are read where they are
  const std::uint8_t* corner_ = nullptr;
  std::int64_t stride_ = 0;
  Pixels16 masks_[kBordered ? kMaxBordered / kRgbLanes : 1];
};

template <Direction kDirection, Stores kStores, bool kBordered>
HEADRACE_AVX2 void planes_avx2(const RgbImage& image, const float* scale, const float* shift, FetchAhead ahead,
                               float* to) {
  const std::int64_t width = image.width, whole = width / kRgbLanes * kRgbLanes;
  const __m256 scales[3] = {_mm256_set1_ps(scale[0]), _mm256_set1_ps(scale[1]), _mm256_set1_ps(scale[2])};
  const __m256 shifts[3] = {_mm256_set1_ps(shift[0]), _mm256_set1_ps(shift[1]), _mm256_set1_ps(shift[2])};
  PixelLoads<kBordered> loads(image);
  FloatsOut<kStores, 3> out(to, image.height * width);
  for (std::int64_t y = 0; y < image.height; ++y) {
    const std::uint8_t* from = loads.row(y);
    ahead.fetch_piece();
    for (std::int64_t i = 0; i < whole; i += kRgbLanes) {
      const std::int64_t x = column_of<kDirection>(whole, i), at = y * width + written_at<kDirection>(image, x);
      const Pixels16 pixels = loads.load(from, x);
      out.put(0, at, pick(pixels, kChannelShuffle<kDirection, 0>), {scales[0], scales[0]}, {shifts[0], shifts[0]});
      out.put(1, at, pick(pixels, kChannelShuffle<kDirection, 1>), {scales[1], scales[1]}, {shifts[1], shifts[1]});
      out.put(2, at, pick(pixels, kChannelShuffle<kDirection, 2>), {scales[2], scales[2]}, {shifts[2], shifts[2]});
      out.advance(at + kRgbLanes);
    }
    planes_part(image, from, y, whole, image.width, scale, shift, to);
  }
}

template <Direction kDirection, Stores kStores, bool kBordered>
HEADRACE_AVX2 void pixels_avx2(const RgbImage& image, const float* scale, const float* shift, FetchAhead ahead,
                               float* to) {
  const std::int64_t width = image.width, whole = width / kRgbLanes * kRgbLanes;
  PixelLoads<kBordered> loads(image);
  FloatsOut<kStores, 1> out(to, 3 * image.height * width);
  for (std::int64_t y = 0; y < image.height; ++y) {
    const std::uint8_t* from = loads.row(y);
    ahead.fetch_piece();
    for (std::int64_t i = 0; i < whole; i += kRgbLanes) {
      const std::int64_t x = column_of<kDirection>(whole, i),
                         at = 3 * (y * width + written_at<kDirection>(image, x));
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
      out.advance(at + 3 * kRgbLanes);
    }
    pixels_part(image, from, y, whole, image.width, scale, shift, to);
  }
}

}  // namespace

void to_planes_avx2(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                    float* to) {
  static constexpr RgbForms kForms = HEADRACE_RGB_FORMS(planes_avx2, false);
  static constexpr RgbForms kBordered = HEADRACE_RGB_FORMS(planes_avx2, true);
  (can_mask(image) ? kBordered : kForms).run(image, scale, shift, traffic, to);
}

void to_pixels_avx2(const RgbImage& image, const float* scale, const float* shift, const Traffic& traffic,
                    float* to) {
  static constexpr RgbForms kForms = HEADRACE_RGB_FORMS(pixels_avx2, false);
  static constexpr RgbForms kBordered = HEADRACE_RGB_FORMS(pixels_avx2, true);
  (can_mask(image) ? kBordered : kForms).run(image, scale, shift, traffic, to);
}

HEADRACE_AVX2 void mirror_avx2(const RgbImage& image, std::uint8_t* to) {
  const std::int64_t whole = image.width / kRgbLanes * kRgbLanes;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < whole; x += kRgbLanes) {
      const Pixels16 pixels = load_pixels(image.first + y * image.stride + 3 * x);
      auto* out = reinterpret_cast<__m128i*>(to + 3 * (y * image.width + image.width - x - kRgbLanes));
      _mm_storeu_si128(out, pick(pixels, kPartShuffle<Direction::kMirrored, 0>));
      _mm_storeu_si128(out + 1, pick(pixels, kPartShuffle<Direction::kMirrored, 1>));
      _mm_storeu_si128(out + 2, pick(pixels, kPartShuffle<Direction::kMirrored, 2>));
    }
    mirror_part(image, y, whole, image.width, to);
  }
}

}  // namespace headrace

#pragma GCC diagnostic pop
#endif
