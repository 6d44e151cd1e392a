// Numbers as most file formats store them, and buffers of bytes for one call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace headrace {

// Returns the unsigned number in the `size` bytes from `at`, lowest first. REQUIRES: size <= 8, within `bytes`.
inline std::uint64_t little_endian(std::span<const std::byte> bytes, std::size_t at, std::size_t size) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

class BorrowedBytes {
 public:
  BorrowedBytes() {
    if (spare().empty()) return;
    bytes_ = std::move(spare().back());
    spare().pop_back();
  }
  ~BorrowedBytes() {
    try {
      spare().push_back(std::move(bytes_));
    } catch (...) {  // freed instead of kept
    }
  }
  BorrowedBytes(const BorrowedBytes&) = delete;
  BorrowedBytes& operator=(const BorrowedBytes&) = delete;

  std::vector<std::byte>& operator*() noexcept { return bytes_; }

 private:
  static std::vector<std::vector<std::byte>>& spare() {
    static thread_local std::vector<std::vector<std::byte>> buffers;
    return buffers;
  }

  std::vector<std::byte> bytes_;
};

}  // namespace headrace
