#include "headrace/tools/pipelines/memory_traffic.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <numeric>
#include <random>

#include "headrace/devices/base/memory.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace headrace::tools {
namespace {

constexpr std::size_t kImages = 50'000, kRing = 3 * 512;
constexpr std::size_t kRows = 32, kRowRead = 96, kRowWritten = 384;

using MoveRow = void (*)(const std::byte* from, std::byte* to);

void move_row_cached(const std::byte* from, std::byte* to) {
  for (std::size_t i = 0; i < kRowWritten; i += kRowRead) std::memcpy(to + i, from, kRowRead);
}

// 96 bytes read, what they come to written over 384.
#if defined(__x86_64__)
[[gnu::target("avx")]] void move_row_avx(const std::byte* from, std::byte* to) {
  const auto* in = reinterpret_cast<const __m256i*>(from);
  const __m256 a = _mm256_castsi256_ps(_mm256_loadu_si256(in)),
               b = _mm256_castsi256_ps(_mm256_loadu_si256(in + 1)),
               c = _mm256_castsi256_ps(_mm256_loadu_si256(in + 2));
  const __m256 value = _mm256_xor_ps(a, _mm256_xor_ps(b, c));
  for (std::size_t i = 0; i < kRowWritten; i += 32) _mm256_stream_ps(reinterpret_cast<float*>(to + i), value);
}
MoveRow choose_move_row() { return __builtin_cpu_supports("avx") ? move_row_avx : move_row_cached; }
#else
MoveRow choose_move_row() { return move_row_cached; }
#endif

LargeMemory touched_memory(std::size_t bytes) {
  LargeMemory memory = allocate_large(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  std::memset(memory.get(), 1, bytes);
  return memory;
}

}  // namespace

CifarTraffic::CifarTraffic() : images_(touched_memory(kImages * kRows * kRowRead)), order_(kImages) {
  std::iota(order_.begin(), order_.end(), 0U);
  std::shuffle(order_.begin(), order_.end(), std::mt19937(1));
}

const std::byte* CifarTraffic::image(std::size_t position) const {
  return images_.get() + order_[position % kImages] * kRows * kRowRead;
}

CifarTraffic::Lane::Lane(const CifarTraffic& traffic, std::size_t first)
    : traffic_(traffic), at_(first), ring_(touched_memory(kRing * kRows * kRowWritten)) {}

void CifarTraffic::Lane::move_image() {
  static const MoveRow move_row = choose_move_row();
  FetchAhead ahead({traffic_.image(at_ + 1), kRows * kRowRead}, kRows);
  const std::byte* const from = traffic_.image(at_);
  std::byte* const to = ring_.get() + at_ % kRing * kRows * kRowWritten;
  for (std::size_t row = 0; row < kRows; ++row) {
    ahead.fetch_piece();
    move_row(from + row * kRowRead, to + row * kRowWritten);
  }
  ++at_;
}

}  // namespace headrace::tools
