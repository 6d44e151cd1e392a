// How the peers' suite compares pixels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/hash.h"

namespace headrace::test {

inline std::string pixels_sha256(const std::vector<std::uint8_t>& pixels) {
  return Sha256().update(std::as_bytes(std::span(pixels))).finish_hex();
}

}  // namespace headrace::test
