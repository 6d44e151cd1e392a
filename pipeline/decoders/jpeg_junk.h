// Bytes that stand in a JPEG where a marker should.
#pragma once

#include <cstddef>
#include <span>

namespace headrace {

// Bytes between two segments of a header: whether they look like a segment that pixels depend on whose marker was
// damaged. A decoder that passes over such a one may make other pixels, of all others it makes the same.
bool may_be_lost_segment(std::span<const std::byte> junk) noexcept;

// Bytes behind entropy-coded data: zeros are what some cameras fill up with. All others are taken for data that
// damage before them left over.
bool is_padding(std::span<const std::byte> junk) noexcept;

}  // namespace headrace
