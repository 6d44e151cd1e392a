// The grey of RGB pixels, (19595 R + 38470 G + 7471 B + 2^15) / 2^16 rounded down, as Pillow computes it: luma
// with 16 bits of each weight.
#pragma once

#include <cstdint>

namespace headrace {

// Converts interleaved RGB pixels to one level each.
void to_grey(const std::uint8_t* from, std::int64_t pixels, std::uint8_t* to);
// Converts them to RGB pixels of three equal levels. REQUIRES: `to` does not overlap `from`.
void to_grey_rgb(const std::uint8_t* from, std::int64_t pixels, std::uint8_t* to);

}  // namespace headrace
