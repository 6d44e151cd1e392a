#include "headrace/tools/pipelines/baseline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/devices/base/memory.h"
#include "headrace/devices/base/text.h"
#include "headrace/tools/pipelines/pipelines.h"

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

namespace headrace::tools {
namespace {

// Channels first.
void normalise_image(const std::uint8_t* image, const CifarNormal& normal, float* out) {
  for (int channel = 0; channel < 3; ++channel) {
    float* plane = out + channel * kCifarPlane;
    for (int i = 0; i < kCifarPlane; ++i) {
      plane[i] = static_cast<float>(image[i * 3 + channel]) * normal.scale[channel] + normal.shift[channel];
    }
  }
}

// Prints once, after a number of records, how long the rest takes.
void announce(const Stopwatch& watch, std::uint64_t done, std::uint64_t records) {
  static constexpr std::uint64_t kTimed = 500;
  static constexpr double kWorthSaying = 0.5;  // seconds
  if (done != kTimed) return;
  const double left = watch.seconds() / kTimed * static_cast<double>(records - done);
  if (left <= kWorthSaying) return;
  fmt::print(stderr, "headrace: the baseline needs {} in memory first: about {:.0f} s more\n",
             count_of(records, "sample"), std::ceil(left));
}

}  // namespace

DecodedSamples decoded_samples(const Source& source) {
  const Fields& fields = source.info().fields;
  const bool encoded = fields.front().encoding == Encoding::kImage;
  const auto label = std::ranges::find(fields, "label", &Field::name);
  const std::uint64_t records = source.info().records;
  DecodedSamples samples;
  samples.sample_bytes =
      encoded ? kCifarBytes
              : static_cast<std::size_t>(fields.front().shape.elements()) * size_of(fields.front().dtype);
  samples.count = records;
  samples.bytes = allocate_large(std::max<std::size_t>(records * samples.sample_bytes, 1));
  if (samples.bytes == nullptr) throw std::bad_alloc();
  if (label != fields.end()) samples.labels.resize(records);
  std::vector<std::byte> scratch;
  BareJpeg jpeg;
  const Stopwatch watch;
  for (std::uint64_t record = 0; record < records; ++record) {
    announce(watch, record, records);
    const RecordView view = source.read(record, scratch);
    const std::span<const std::byte> bytes = encoded ? std::as_bytes(jpeg.decode(view.fields[0])) : view.fields[0];
    if (bytes.size() != samples.sample_bytes) {
      throw DataError(ErrorCode::kDataCorrupt, "is not a 32x32 RGB image", {.source = source.describe(record)},
                      "the baseline needs images of one size");
    }
    std::memcpy(samples.bytes.get() + record * samples.sample_bytes, bytes.data(), bytes.size());
    if (samples.labels.empty()) continue;
    const auto& value = view.fields[static_cast<std::size_t>(label - fields.begin())];
    std::memcpy(&samples.labels[record], value.data(), std::min(value.size(), sizeof(std::int64_t)));
  }
  return samples;
}

FusedLoop::Work FusedLoop::work_of(const std::string& pipeline) {
  if (pipeline == "trivial") return Work::kCopy;
  if (pipeline == "mnist-train" || pipeline == "fashion-train") return Work::kScale;
  if (pipeline == "cifar-eval") return Work::kNormalize;
  if (pipeline == "cifar-train") return Work::kAugment;
  throw ConfigError("pipeline " + pipeline + " is no single loop");
}

bool FusedLoop::exists(const std::string& pipeline) {
  static constexpr const char* kNames[] = {"trivial", "mnist-train", "fashion-train", "cifar-eval", "cifar-train"};
  return std::ranges::find(kNames, pipeline) != std::end(kNames);
}

FusedLoop::FusedLoop(const std::string& pipeline, DecodedSamples samples, std::vector<std::uint32_t> order)
    : work_(work_of(pipeline)), samples_(std::move(samples)), order_(std::move(order)) {
  const bool colour = work_ == Work::kNormalize || work_ == Work::kAugment;
  if (colour && samples_.sample_bytes != kCifarBytes) {
    throw ConfigError("the baseline of " + pipeline + " takes 32x32 RGB images");
  }
}

std::size_t FusedLoop::row_bytes() const {
  return work_ == Work::kCopy ? samples_.sample_bytes : samples_.sample_bytes * sizeof(float);
}

const std::uint8_t* FusedLoop::sample(std::size_t position) const {
  return reinterpret_cast<const std::uint8_t*>(samples_.bytes.get()) + at(position) * samples_.sample_bytes;
}

void FusedLoop::copy(std::size_t first, std::size_t count, std::byte* rows) const {
  const std::size_t bytes = samples_.sample_bytes;
  if (order_.empty()) {
    std::memcpy(rows, sample(first), count * bytes);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) std::memcpy(rows + i * bytes, sample(first + i), bytes);
}

void FusedLoop::augment(std::size_t first, std::size_t count, std::minstd_rand& random, float* rows) const {
  constexpr int kOffsets = 2 * kCifarPad + 1;
  const AugmentCifar augment_image = cifar_forms().front().augment;
  for (std::size_t i = first; i < first + count; ++i, rows += kCifarBytes) {
    const unsigned draw = static_cast<unsigned>(random()) >> 4;
    const CifarWindow window{.top = static_cast<int>(draw % kOffsets) - kCifarPad,
                             .left = static_cast<int>(draw / 16 % kOffsets) - kCifarPad,
                             .mirrored = (draw >> 12 & 1) != 0};
    augment_image(sample(i), window, normal_, sample((i + 1) % samples()), rows);
  }
  finish_cifar();
}

void FusedLoop::make(std::size_t first, std::size_t count, std::minstd_rand& random, std::byte* rows,
                     std::int64_t* labels) const {
  auto* out = reinterpret_cast<float*>(rows);
  const std::size_t values = samples_.sample_bytes;  // of a sample that becomes floats
  switch (work_) {
    case Work::kCopy: copy(first, count, rows); break;
    case Work::kScale:
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint8_t* pixels = sample(first + i);
        float* row = out + i * values;
        for (std::size_t j = 0; j < values; ++j) row[j] = static_cast<float>(pixels[j]) * (1.0F / 255.0F);
      }
      break;
    case Work::kNormalize:
      for (std::size_t i = 0; i < count; ++i) normalise_image(sample(first + i), normal_, out + i * values);
      break;
    case Work::kAugment: augment(first, count, random, out); break;
  }
  if (samples_.labels.empty()) return;
  for (std::size_t i = 0; i < count; ++i) labels[i] = samples_.labels[at(first + i)];
}

}  // namespace headrace::tools
