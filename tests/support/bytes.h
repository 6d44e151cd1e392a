// Owned bytes, as fixtures pass them around.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace headrace::test {

using Bytes = std::vector<std::byte>;

inline Bytes to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline Bytes to_bytes(std::span<const std::byte> view) { return {view.begin(), view.end()}; }

}  // namespace headrace::test
