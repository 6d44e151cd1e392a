// Numbers below 2^-126 as zeros. Private to the CPU backend.
#pragma once

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

}  // namespace headrace
