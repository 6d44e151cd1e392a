#include "headrace/pipeline/operations/kernels/grey_kernels.h"

#include "headrace/devices/base/simd.h"

namespace headrace {
namespace {

[[gnu::always_inline]] inline std::uint8_t grey_of(const std::uint8_t* pixel) {
  const std::uint32_t sum = 19595U * pixel[0] + 38470U * pixel[1] + 7471U * pixel[2] + (1U << 15);
  return static_cast<std::uint8_t>(sum >> 16);
}

HEADRACE_SIMD void grey_levels(const std::uint8_t* __restrict from, std::int64_t pixels,
                               std::uint8_t* __restrict to) {
  for (std::int64_t i = 0; i < pixels; ++i) to[i] = grey_of(from + 3 * i);
}

HEADRACE_SIMD void grey_pixels(const std::uint8_t* __restrict from, std::int64_t pixels,
                               std::uint8_t* __restrict to) {
  for (std::int64_t i = 0; i < pixels; ++i) {
    const std::uint8_t grey = grey_of(from + 3 * i);
    to[3 * i] = grey;
    to[3 * i + 1] = grey;
    to[3 * i + 2] = grey;
  }
}

}  // namespace

void to_grey(const std::uint8_t* from, std::int64_t pixels, std::uint8_t* to) { grey_levels(from, pixels, to); }

void to_grey_rgb(const std::uint8_t* from, std::int64_t pixels, std::uint8_t* to) {
  grey_pixels(from, pixels, to);
}

}  // namespace headrace
