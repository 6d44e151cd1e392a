// Arithmetic on sizes and indices: products and sums that never wrap around, reflection at a border.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

// Products and sums of sizes that never wrap around: std::nullopt if they do not fit.

// The maximum size of a file, of an allocation and of a signed count.
inline constexpr std::uint64_t kMaxSize = (std::uint64_t{1} << 63) - 1;

// Returns std::nullopt beyond kMaxSize, even if a later factor is 0.
constexpr std::optional<std::uint64_t> checked_product(std::initializer_list<std::uint64_t> factors) noexcept {
  std::uint64_t product = 1;
  bool is_zero = false;
  for (const std::uint64_t factor : factors) {
    is_zero = is_zero || factor == 0;
    if (factor == 0) continue;
    if (product > kMaxSize / factor) return std::nullopt;
    product *= factor;
  }
  return is_zero ? 0 : product;
}

constexpr std::optional<std::uint64_t> checked_sum(std::initializer_list<std::uint64_t> terms) noexcept {
  std::uint64_t sum = 0;
  for (const std::uint64_t term : terms) {
    if (term > kMaxSize - sum) return std::nullopt;
    sum += term;
  }
  return sum;
}

}  // namespace headrace

// Reflection at the borders of an image, without repeating the edge: -1 is 1, size is size - 2.

namespace headrace {

// Returns the reflected index. For host and device code. REQUIRES: -size < at < 2 size - 1.
template <typename Integer>
constexpr Integer reflected(Integer at, Integer size) noexcept {
  if (at < 0) return -at;
  return at < size ? at : 2 * (size - 1) - at;
}

}  // namespace headrace
