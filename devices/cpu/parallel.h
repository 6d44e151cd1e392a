// Splitting long loops over OpenMP threads. Private to the CPU backend.
#pragma once

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "headrace/devices/cpu/flush_denormals.h"

namespace headrace {

// Calls function(begin, end) over [0, count) in ranges whose limits are multiples of `grain`, one range a
// thread; in the calling thread alone where `grain` or fewer, or where OpenMP may use one thread only.
// `function` must not throw, and its result must not depend on where the limits are.
template <typename Function>
void parallel_ranges(std::int64_t count, std::int64_t grain, const Function& function) {
  const std::int64_t grains = (count + grain - 1) / grain;
  const std::int64_t threads = std::min<std::int64_t>(omp_get_max_threads(), grains);
  if (threads <= 1) {
    if (count > 0) function(std::int64_t{0}, count);
    return;
  }
  // Orders the threads for ThreadSanitizer too, which does not see libgomp start and join them.
  std::atomic<std::int64_t> started{0}, done{0};
  started.store(1, std::memory_order_release);
#pragma omp parallel for schedule(static, 1) num_threads(static_cast <int>(threads))
  for (std::int64_t part = 0; part < threads; ++part) {
    (void)started.load(std::memory_order_acquire);
    const FlushDenormals guard;
    const std::int64_t begin = grains * part / threads * grain;
    const std::int64_t end = std::min(count, grains * (part + 1) / threads * grain);
    function(begin, end);
    done.fetch_add(1, std::memory_order_release);
  }
  (void)done.load(std::memory_order_acquire);
}

// A grain that is worth a thread for rows of `row_elements` f32 each.
constexpr std::int64_t row_grain(std::int64_t row_elements) noexcept {
  constexpr std::int64_t kElements = 64 * 1024;
  return std::max<std::int64_t>(1, kElements / std::max<std::int64_t>(1, row_elements));
}

}  // namespace headrace
