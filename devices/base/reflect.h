// Reflection at the borders of an image, without repeating the edge: -1 is 1, size is size - 2.
#pragma once

namespace headrace {

// Returns the reflected index. For host and device code. REQUIRES: -size < at < 2 size - 1.
template <typename Integer>
constexpr Integer reflected(Integer at, Integer size) noexcept {
  if (at < 0) return -at;
  return at < size ? at : 2 * (size - 1) - at;
}

}  // namespace headrace
