// What files of bytes are made of: numbers and texts, little-endian on any machine, and their checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/error.h"

namespace HEADRACE_API headrace {

// Numbers and texts to bytes and back, little-endian on any machine.

// Numbers and texts to bytes, little-endian on any machine.
class ByteWriter {
 public:
  ByteWriter& u8(std::uint8_t value) { return number(value, 1); }
  ByteWriter& u32(std::uint32_t value) { return number(value, 4); }
  ByteWriter& u64(std::uint64_t value) { return number(value, 8); }
  // Writes a count of bytes and the bytes.
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

// Bytes to numbers and texts, little-endian on any machine. Never reads past the end.
class ByteReader {
 public:
  // `bytes` are those from `offset` of the file `name`. REQUIRES: they outlive this object.
  ByteReader(std::span<const std::byte> bytes, std::string name, std::uint64_t offset)
      : bytes_(bytes), name_(std::move(name)), offset_(offset) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(number(1)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(number(4)); }
  std::uint64_t u64() { return number(8); }
  std::string text() {
    const std::span<const std::byte> bytes = raw(u32());
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::span<const std::byte> raw(std::uint64_t count) {
    if (count > left()) fail("a length reaches past the end of its section");
    const std::span<const std::byte> bytes = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += bytes.size();
    return bytes;
  }

  std::uint64_t left() const noexcept { return bytes_.size() - at_; }

  // Throws DataError(kDataCorrupt) with the current position.
  [[noreturn]] void fail(const std::string& what) const {
    throw DataError(ErrorCode::kDataCorrupt, what, {.source = name_, .offset = offset_ + at_});
  }

 private:
  std::uint64_t number(std::size_t size) {
    const std::span<const std::byte> bytes = raw(size);
    std::uint64_t value = 0;
    for (std::size_t i = size; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return value;
  }

  std::span<const std::byte> bytes_;
  std::string name_;
  std::uint64_t offset_;
  std::size_t at_ = 0;
};

// CRC-32C (Castagnoli): the checksum of TFRecord files.

// Uses the processor's instruction if it has one.
std::uint32_t crc32c(std::span<const std::byte> bytes) noexcept;
// Computes crc32c() from a table: works on every processor and is the reference for crc32c().
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes) noexcept;

// Masks a checksum as TFRecord stores it: rotated plus a constant, so that checksums of checksums are no special
// case.
constexpr std::uint32_t mask_crc32c(std::uint32_t crc) noexcept {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U;
}

}  // namespace headrace
