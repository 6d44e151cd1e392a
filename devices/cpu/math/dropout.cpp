#include "headrace/devices/cpu/math/dropout.h"

#include <cmath>

#include "headrace/devices/base/simd.h"
#include "headrace/devices/cpu/math/element.h"
#include "headrace/devices/cpu/math/parallel.h"

namespace headrace::cpu {
namespace {

constexpr std::int64_t kPhiloxLanes = 16;          // Philox blocks at once
constexpr std::int64_t kWords = 4 * kPhiloxLanes;  // random words they make

// The upper three words of the counter and the key of one row (see Philox in base/rng.h).
struct RowCounter {
  std::uint32_t counter1, counter2, counter3, key0, key1;
};

// words[j * kPhiloxLanes + i] = word j of block `first` + i: Philox::round10 over many blocks.
HEADRACE_INLINE void philox_blocks(const RowCounter& row, std::uint32_t first, std::uint32_t* __restrict words) {
  for (std::uint32_t lane = 0; lane < kPhiloxLanes; ++lane) {
    std::uint32_t c0 = first + lane, c1 = row.counter1, c2 = row.counter2, c3 = row.counter3;
    std::uint32_t k0 = row.key0, k1 = row.key1;
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53} * c0;
      const std::uint64_t b = std::uint64_t{0xCD9E8D57} * c2;
      c0 = static_cast<std::uint32_t>(b >> 32) ^ c1 ^ k0;
      c1 = static_cast<std::uint32_t>(b);
      c2 = static_cast<std::uint32_t>(a >> 32) ^ c3 ^ k1;
      c3 = static_cast<std::uint32_t>(a);
      k0 += 0x9E3779B9;
      k1 += 0xBB67AE85;
    }
    words[4 * lane] = c0;
    words[4 * lane + 1] = c1;
    words[4 * lane + 2] = c2;
    words[4 * lane + 3] = c3;
  }
}

template <typename T>
HEADRACE_INLINE void drop(const RowCounter& counter, std::uint32_t threshold, float scale, const T* x, T* y,
                          std::int64_t elements) {
  std::uint32_t words[kWords];
  for (std::int64_t at = 0; at < elements; at += kWords) {
    philox_blocks(counter, static_cast<std::uint32_t>(at / 4), words);
    const std::int64_t count = elements - at < kWords ? elements - at : kWords;
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i) {
      y[at + i] = element<T>(words[i] >= threshold ? value(x[at + i]) * scale : 0.0F);
    }
  }
}

HEADRACE_SIMD_MATH void drop_row(const RowCounter& counter, std::uint32_t threshold, float scale, const float* x,
                                 float* y, std::int64_t elements) {
  drop(counter, threshold, scale, x, y, elements);
}
HEADRACE_SIMD_MATH void drop_row(const RowCounter& counter, std::uint32_t threshold, float scale,
                                 const BFloat16* x, BFloat16* y, std::int64_t elements) {
  drop(counter, threshold, scale, x, y, elements);
}

}  // namespace

template <typename T>
void dropout(const DropoutKey& key, float rate, const T* x, T* y, std::int64_t rows, std::int64_t elements) {
  const auto threshold = static_cast<std::uint32_t>(std::llround(static_cast<double>(rate) * 0x1p32));
  const float scale = 1.0F / (1.0F - rate);
  parallel_ranges(rows, row_grain(4 * elements), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::uint64_t record = key.first_row + static_cast<std::uint64_t>(row);
      const RowCounter counter{.counter1 = static_cast<std::uint32_t>(record),
                               .counter2 = static_cast<std::uint32_t>((record >> 32) << 16) | key.layer,
                               .counter3 = static_cast<std::uint32_t>(key.step),
                               .key0 = static_cast<std::uint32_t>(key.seed),
                               .key1 = static_cast<std::uint32_t>(key.seed >> 32)};
      drop_row(counter, threshold, scale, x + row * elements, y + row * elements, elements);
    }
  });
}
template void dropout(const DropoutKey&, float, const float*, float*, std::int64_t, std::int64_t);
template void dropout(const DropoutKey&, float, const BFloat16*, BFloat16*, std::int64_t, std::int64_t);

}  // namespace headrace::cpu
