#include "headrace/pipeline/decoders/jpeg_junk.h"

#include <algorithm>
#include <bit>

namespace headrace {
namespace {

// Frame headers, Huffman and arithmetic codes, scan, quantization, restart interval; JFIF and Adobe say what the
// colours are.
bool makes_pixels(unsigned marker) {
  constexpr unsigned kScan = 0xDA, kQuantization = 0xDB, kRestartInterval = 0xDD, kJfif = 0xE0, kAdobe = 0xEE;
  switch (marker) {
    case kScan:
    case kQuantization:
    case kRestartInterval:
    case kJfif:
    case kAdobe: return true;
    default: return marker >= 0xC0 && marker <= 0xCF;
  }
}

}  // namespace

bool may_be_lost_segment(std::span<const std::byte> junk) noexcept {
  constexpr std::size_t kMarker = 2, kLength = 2;
  if (junk.size() < kMarker + kLength) return false;
  const auto at = [&](std::size_t i) { return std::to_integer<std::size_t>(junk[i]); };
  const std::size_t length = at(2) << 8 | at(3), rest = junk.size() - kMarker;  // without the marker
  if (!makes_pixels(static_cast<unsigned>(at(1)))) return false;
  const bool one_bit_off =
      std::popcount(at(0) ^ 0xFF) == 1;  // then an inner 0xFF may have been taken for a marker
  return length == rest || (one_bit_off && length > rest);
}

bool is_padding(std::span<const std::byte> junk) noexcept {
  return std::ranges::all_of(junk, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace headrace
