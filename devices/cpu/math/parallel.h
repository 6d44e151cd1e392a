// How a kernel's loops are divided among threads, and the scratch memory of a stream's thread. Private to the CPU
// backend.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "headrace/devices/base/memory.h"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace headrace {

// While one lives, its thread reads and writes denormal numbers as zeros. A weight whose gradient stays 0 has
// moments that decay to denormals and stay there; the processor would take a hundred times longer for each.
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

// Returns the unit of which range limits are multiples: whole rows, or enough short ones that two threads rarely
// write one cache line.
constexpr std::int64_t range_unit(std::int64_t grain) noexcept { return std::max<std::int64_t>(1, grain / 256); }

// Calls function(begin, end) over [0, count) in ranges of nearly equal length, one range per thread; only in the
// calling thread if there is less than a `grain` for each of two, or if OpenMP may use only one. REQUIRES:
// `function` does not throw, and its result does not depend on the limits.
template <typename Function>
void parallel_ranges(std::int64_t count, std::int64_t grain, const Function& function) {
  const std::int64_t threads = std::min<std::int64_t>(omp_get_max_threads(), count / grain);
  if (threads <= 1) {
    if (count > 0) function(std::int64_t{0}, count);
    return;
  }
  const std::int64_t unit = range_unit(grain), units = (count + unit - 1) / unit;
  // Orders the threads for ThreadSanitizer, which does not see libgomp start and join them.
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

// Returns a grain that is worth a thread, for rows of `row_elements` f32 each.
constexpr std::int64_t row_grain(std::int64_t row_elements) noexcept {
  constexpr std::int64_t kElements = 16 * 1024;
  return std::max<std::int64_t>(1, kElements / std::max<std::int64_t>(1, row_elements));
}

// Scratch memory of one stream's worker thread.

// Work of one stream runs in order on one thread, so all of it shares one block: no kernel may rely on earlier
// contents. It grows to the largest request and is freed with the thread.
class Workspace {
 public:
  static constexpr std::size_t kAlignment = 64;

  static Workspace& of_this_thread() noexcept {
    thread_local Workspace workspace;
    return workspace;
  }

  // Returns at least `bytes`, aligned to 64. Valid until the next call from this thread.
  std::byte* reserve(std::size_t bytes) {
    if (bytes > bytes_) {
      block_.reset();
      bytes_ = 0;
      block_ = allocate_large(bytes);
      if (block_ == nullptr) throw std::bad_alloc();
      bytes_ = bytes;
    }
    return block_.get();
  }

  static constexpr std::size_t align(std::size_t bytes) noexcept {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

 private:
  LargeMemory block_;
  std::size_t bytes_ = 0;
};

}  // namespace headrace
