// Two rows blended with each other, in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "headrace/devices/base/dtype.h"

namespace headrace {

// a becomes a share + b (1 - share), and b the other way round; u8 is rounded to the nearest.
void blend_floats(float* first, float* second, std::int64_t count, float share);
void blend_bytes(std::uint8_t* first, std::uint8_t* second, std::int64_t count, float share);

}  // namespace headrace
