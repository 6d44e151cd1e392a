// Changes of u8 levels that Pillow's ImageOps and ImageEnhance define, to the bit.
#pragma once

#include <array>
#include <cstdint>

namespace headrace {

// Interleaved pixels of any number of channels, and where as many go that do not overlap them.
struct LevelWork {
  const std::uint8_t* from = nullptr;
  std::int64_t height = 0, width = 0, channels = 1;
  std::uint8_t* to = nullptr;

  std::int64_t elements() const noexcept { return height * width * channels; }
};

// 255 - v.
void invert_levels(const LevelWork& work);
// Clears the lowest 8 - bits of each. REQUIRES: 0 <= bits <= 8.
void posterize_levels(const LevelWork& work, int bits);
// 255 - v where v >= threshold, which is 0 to 256.
void solarize_levels(const LevelWork& work, int threshold);
// Spreads each channel until it reaches from 0 to 255; one of a single level stays.
void stretch_levels(const LevelWork& work);
// Spreads each channel by the shares of its levels.
void equalize_levels(const LevelWork& work);
// s + (v - s) factor, rounded down and clamped, s being (5 v + the eight around it) / 13, rounded. Pixels at the
// border stay, and so do images without others.
void sharpen_levels(const LevelWork& work, float factor);

}  // namespace headrace
