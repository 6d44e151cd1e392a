// What the blocks of a JPEG refer to.
#pragma once

#include <array>
#include <cstdint>

namespace headrace {

constexpr int kMostJpegComponents = 4;

// Each component's last mean level (DC coefficient), of which the next block says the difference.
using JpegLevels = std::array<std::int16_t, kMostJpegComponents>;

}  // namespace headrace
