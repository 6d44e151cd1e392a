// Division by a number that is known before a kernel starts: a multiplication and no branch, where a GPU's own
// division of 64 bits is a call of many registers. Private to the CUDA backend.
#pragma once

#include <cstdint>
#include <limits>

#include "headrace/devices/cuda/math/host_device.h"

namespace headrace::cuda {

// The upper half of the product.
HEADRACE_HOST_DEVICE std::uint64_t upper_product(std::uint64_t a, std::uint64_t b) {
#ifdef __CUDA_ARCH__
  return __umul64hi(a, b);
#else
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>(Wide{a} * b >> 64);
#endif
}

// Divides n >= 0 by a divisor d >= 1, exactly where n d < 2^64. With r = ceil(2^64 / d), r d = 2^64 + e and e < d:
// n r / 2^64 is n / d + n e / (2^64 d), beyond n / d by less than 1 / d.
class Divisor {
 public:
  Divisor() = default;
  explicit Divisor(std::int64_t divisor)
      : reciprocal_(divisor == 1
                        ? 0
                        : std::numeric_limits<std::uint64_t>::max() / static_cast<std::uint64_t>(divisor) + 1) {}

  HEADRACE_HOST_DEVICE std::int64_t quotient(std::int64_t n) const {
    if (reciprocal_ == 0) return n;
    return static_cast<std::int64_t>(upper_product(static_cast<std::uint64_t>(n), reciprocal_));
  }

 private:
  std::uint64_t reciprocal_ = 0;  // 0: of 1
};

}  // namespace headrace::cuda
