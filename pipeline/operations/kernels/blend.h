// Blends two rows with each other, in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/devices/base/dtype.h"

namespace headrace {

// Sets first to first share + second (1 - share), and second vice versa; u8 is rounded to nearest.
void blend_floats(float* first, float* second, std::int64_t count, float share);
void blend_bytes(std::uint8_t* first, std::uint8_t* second, std::int64_t count, float share);

}  // namespace headrace
