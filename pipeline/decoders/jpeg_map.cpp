#include "headrace/pipeline/decoders/jpeg_map.h"

#include <algorithm>

#include "headrace/devices/base/hash.h"

namespace headrace {
namespace {

constexpr std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

std::uint64_t JpegMap::content_of(std::span<const std::byte> encoded) noexcept { return xxh3(encoded); }

std::span<const std::byte> JpegMap::row(std::span<const std::byte> encoded, std::int64_t row) const noexcept {
  // The last bits may share a byte with the next row's first; a zero may be stuffed behind it.
  const std::size_t begin = rows_[index(row)], end = std::size_t{rows_[index(row + 1)]} + 2;
  return encoded.subspan(begin, std::min(end, encoded.size()) - begin);
}

JpegMap::Place JpegMap::place(std::int64_t row, std::int64_t stretch) const noexcept {
  const std::int64_t at = row * (stretches_ + 1) + stretch;
  Place place{.bit = bits_[index(at)]};
  std::copy_n(levels_.begin() + at * components_, components_, place.levels.begin());
  return place;
}

std::uint64_t JpegMap::bytes() const noexcept {
  return sizeof *this + rows_.capacity() * sizeof rows_[0] + bits_.capacity() * sizeof bits_[0] +
         levels_.capacity() * sizeof levels_[0];
}

}  // namespace headrace
