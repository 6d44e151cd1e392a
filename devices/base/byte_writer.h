// Numbers and texts to bytes, little-endian on any machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "headrace/devices/base/api.h"

namespace HEADRACE_API headrace {

class ByteWriter {
 public:
  ByteWriter& u8(std::uint8_t value) { return number(value, 1); }
  ByteWriter& u32(std::uint32_t value) { return number(value, 4); }
  ByteWriter& u64(std::uint64_t value) { return number(value, 8); }
  // A count of bytes and the bytes.
  ByteWriter& text(std::string_view value) {
    return u32(static_cast<std::uint32_t>(value.size())).raw(std::as_bytes(std::span(value)));
  }
  ByteWriter& raw(std::span<const std::byte> value) {
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    return *this;
  }

  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  ByteWriter& number(std::uint64_t value, int size) {
    for (int i = 0; i < size; ++i) bytes_.push_back(static_cast<std::byte>(value >> 8 * i));
    return *this;
  }

  std::vector<std::byte> bytes_;
};

}  // namespace headrace
