// Bytes that stand in a JPEG where a marker should.
#pragma once

#include <cstddef>
#include <span>

namespace headrace {

// Whether bytes between two header segments look like a segment that lost its marker and that pixels depend on.
// Skipping such a segment may change pixels; skipping any other bytes does not.
bool may_be_lost_segment(std::span<const std::byte> junk) noexcept;

// Whether bytes after the entropy-coded data are padding: zeros, which some cameras write. Any others are taken
// for data left over by damage before them.
bool is_padding(std::span<const std::byte> junk) noexcept;

}  // namespace headrace
