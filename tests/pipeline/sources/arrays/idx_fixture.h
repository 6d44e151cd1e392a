// IDX files made for tests.
#pragma once

#include <initializer_list>

#include "headrace/tests/support/test.h"

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

// Of another type, by its code, with the elements' bytes as they are in the file.
inline Bytes make_idx_of(int type, std::initializer_list<std::uint32_t> extents,
                         std::initializer_list<int> bytes) {
  Bytes file = make_idx(extents);
  file.resize(4 + 4 * extents.size());
  file[2] = static_cast<std::byte>(type);
  for (const int byte : bytes) file.push_back(static_cast<std::byte>(byte));
  return file;
}

}  // namespace headrace::test
