// What memory alone allows `cifar-train`: an image is 3 kB read from anywhere in a data set and 12 kB written,
// into a ring of batches that is larger than the caches, past them. Nothing is computed.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "headrace/devices/base/large_memory.h"
#include "headrace/devices/base/prefetch.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace {
namespace {

constexpr std::size_t kImages = 50'000, kRing = 3 * 512;
constexpr std::size_t kRows = 32, kRowRead = 96, kRowWritten = 384;

// 96 bytes read, what they come to written over 384.
#if defined(__x86_64__)
[[gnu::target("avx")]] void move_row(const std::byte* from, std::byte* to) {
  const auto* in = reinterpret_cast<const __m256i*>(from);
  const __m256 a = _mm256_castsi256_ps(_mm256_loadu_si256(in)),
               b = _mm256_castsi256_ps(_mm256_loadu_si256(in + 1)),
               c = _mm256_castsi256_ps(_mm256_loadu_si256(in + 2));
  const __m256 value = _mm256_xor_ps(a, _mm256_xor_ps(b, c));
  for (std::size_t i = 0; i < kRowWritten; i += 32) _mm256_stream_ps(reinterpret_cast<float*>(to + i), value);
}
bool can_stream() { return __builtin_cpu_supports("avx"); }
#else
void move_row(const std::byte* from, std::byte* to) {
  for (std::size_t i = 0; i < kRowWritten; i += kRowRead) std::memcpy(to + i, from, kRowRead);
}
bool can_stream() { return true; }
#endif

void cifar_traffic(benchmark::State& state) {
  if (!can_stream()) return state.SkipWithError("this processor has no AVX");
  const LargeMemory images = allocate_large(kImages * kRows * kRowRead),
                    ring = allocate_large(kRing * kRows * kRowWritten);
  if (images == nullptr || ring == nullptr) return state.SkipWithError("there is no memory");
  std::memset(images.get(), 1, kImages * kRows * kRowRead);
  std::memset(ring.get(), 1, kRing * kRows * kRowWritten);
  std::vector<std::uint32_t> order(kImages);
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(1));
  std::size_t at = 0;
  const auto image = [&](std::size_t i) { return images.get() + order[i % kImages] * kRows * kRowRead; };
  for (auto _ : state) {
    FetchAhead ahead({image(at + 1), kRows * kRowRead}, kRows);
    std::byte* const to = ring.get() + at % kRing * kRows * kRowWritten;
    for (std::size_t row = 0; row < kRows; ++row) {
      ahead.fetch_piece();
      move_row(image(at) + row * kRowRead, to + row * kRowWritten);
    }
    ++at;
  }
  state.counters["images_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(cifar_traffic)->UseRealTime()->Repetitions(5)->ReportAggregatesOnly(true);

}  // namespace
}  // namespace headrace

BENCHMARK_MAIN();
