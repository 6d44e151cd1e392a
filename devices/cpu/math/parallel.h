// Splitting long loops over OpenMP threads. Private to the CPU backend.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace headrace {

// While one lives, its thread takes and makes zeros for denormal numbers. A weight whose gradient stays 0 has
// moments that decay to denormals and stay there; the processor would then take a hundred times longer for each.
class FlushDenormals {
 public:
#if defined(__SSE2__)
  FlushDenormals() noexcept : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlushToZero | kDenormalsAreZero); }
  ~FlushDenormals() { _mm_setcsr(before_); }
#else
  FlushDenormals() noexcept {}  // user-provided: a guard is never an unused variable
#endif
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

#if defined(__SSE2__)
 private:
  static constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  unsigned before_;
#endif
};

// What the limits of ranges are multiples of: whole rows, of many short ones so many that hardly a cache line is
// written by two threads.
constexpr std::int64_t range_unit(std::int64_t grain) noexcept { return std::max<std::int64_t>(1, grain / 256); }

// Calls function(begin, end) over [0, count) in ranges of nearly equal length, one range a thread; in the
// calling thread alone where there is not a `grain` for each of two, or where OpenMP may use one thread only.
// `function` must not throw, and its result must not depend on where the limits are.
template <typename Function>
void parallel_ranges(std::int64_t count, std::int64_t grain, const Function& function) {
  const std::int64_t threads = std::min<std::int64_t>(omp_get_max_threads(), count / grain);
  if (threads <= 1) {
    if (count > 0) function(std::int64_t{0}, count);
    return;
  }
  const std::int64_t unit = range_unit(grain), units = (count + unit - 1) / unit;
  // Orders the threads for ThreadSanitizer too, which does not see libgomp start and join them.
  std::atomic<std::int64_t> started{0}, done{0};
  started.store(1, std::memory_order_release);
#pragma omp parallel for schedule(static, 1) num_threads(static_cast <int>(threads))
  for (std::int64_t part = 0; part < threads; ++part) {
    (void)started.load(std::memory_order_acquire);
    const FlushDenormals guard;
    const std::int64_t begin = units * part / threads * unit;
    const std::int64_t end = std::min(count, units * (part + 1) / threads * unit);
    function(begin, end);
    done.fetch_add(1, std::memory_order_release);
  }
  (void)done.load(std::memory_order_acquire);
}

// A grain that is worth a thread for rows of `row_elements` f32 each.
constexpr std::int64_t row_grain(std::int64_t row_elements) noexcept {
  constexpr std::int64_t kElements = 16 * 1024;
  return std::max<std::int64_t>(1, kElements / std::max<std::int64_t>(1, row_elements));
}

}  // namespace headrace
