// The fields of one serialized protocol buffer message, one after the other, without copying them.
//
// TFRecord needs four tiny message types and the bytes of an image in place; a generated parser would copy the
// image out and bring a compiler and a library into the build.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "headrace/devices/base/error.h"

namespace headrace {

class WireReader {
 public:
  enum class Kind { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  explicit WireReader(std::span<const std::byte> message) : rest_(message) {}

  // Advances to the next field; false at the end of the message. Throws Error(kDataCorrupt) if a length or a
  // number reaches beyond the message, or if a field's kind is unknown.
  bool next() {
    if (rest_.empty()) return false;
    const std::uint64_t tag = take_varint();
    number_ = tag >> 3;
    kind_ = static_cast<Kind>(tag & 7);
    if (number_ == 0) fail();
    switch (kind_) {
      case Kind::kVarint: varint_ = take_varint(); return true;
      case Kind::kFixed64: bytes_ = take(8); return true;
      case Kind::kFixed32: bytes_ = take(4); return true;
      case Kind::kBytes: bytes_ = take(take_varint()); return true;
    }
    fail();
  }

  bool is(std::uint64_t number, Kind kind) const noexcept { return number_ == number && kind_ == kind; }
  std::uint64_t varint() const noexcept { return varint_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }
  std::string_view text() const noexcept { return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()}; }

  bool at_end() const noexcept { return rest_.empty(); }
  // Returns the next number of a packed list. REQUIRES: the message consists only of that list.
  std::uint64_t take_varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) fail();
      const auto byte = std::to_integer<std::uint64_t>(rest_.front());
      rest_ = rest_.subspan(1);
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail();
  }

 private:
  [[noreturn]] static void fail() {
    throw Error(ErrorCode::kDataCorrupt, "its bytes are no protocol buffer message");
  }
  std::span<const std::byte> take(std::uint64_t size) {
    if (size > rest_.size()) fail();
    const std::span<const std::byte> taken = rest_.first(static_cast<std::size_t>(size));
    rest_ = rest_.subspan(taken.size());
    return taken;
  }

  std::span<const std::byte> rest_;
  std::uint64_t number_ = 0;
  Kind kind_ = Kind::kVarint;
  std::uint64_t varint_ = 0;
  std::span<const std::byte> bytes_;
};

}  // namespace headrace
