#include "headrace/pipeline/operations/kernels/blend.h"

#include "headrace/devices/base/simd.h"

namespace headrace {
namespace {

// Functions compiled for several processor generations are exported unless they have internal linkage: hence these
// instead of the functions themselves.
HEADRACE_SIMD void blend_f32(float* first, float* second, std::int64_t count, float share) {
  const float rest = 1 - share;
  for (std::int64_t i = 0; i < count; ++i) {
    const float a = first[i], b = second[i];
    first[i] = a * share + b * rest;
    second[i] = b * share + a * rest;
  }
}

HEADRACE_SIMD void blend_u8(std::uint8_t* first, std::uint8_t* second, std::int64_t count, float share) {
  const float rest = 1 - share;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto a = static_cast<float>(first[i]), b = static_cast<float>(second[i]);
    first[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(a * share + b * rest + 0.5F));
    second[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(b * share + a * rest + 0.5F));
  }
}

}  // namespace

void blend_floats(float* first, float* second, std::int64_t count, float share) {
  blend_f32(first, second, count, share);
}

void blend_bytes(std::uint8_t* first, std::uint8_t* second, std::int64_t count, float share) {
  blend_u8(first, second, count, share);
}

}  // namespace headrace
