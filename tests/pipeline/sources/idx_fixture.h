// IDX files made for tests.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "headrace/tests/support/bytes.h"

namespace headrace::test {

// Elements count up from `first`.
inline Bytes make_idx(std::initializer_list<std::uint32_t> extents, int first = 0) {
  Bytes bytes = {std::byte{0}, std::byte{0}, std::byte{8}, static_cast<std::byte>(extents.size())};
  std::uint64_t elements = 1;
  for (const std::uint32_t extent : extents) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::byte>(extent >> shift));
    elements *= extent;
  }
  for (std::uint64_t i = 0; i < elements; ++i)
    bytes.push_back(static_cast<std::byte>(i + static_cast<unsigned>(first)));
  return bytes;
}

}  // namespace headrace::test
