// Entropy-coded bytes of a JPEG with the zeros taken out that are stuffed behind bytes of ones (ITU-T T.81,
// B.1.1.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace {

// A buffer that is used again and again.
class UnstuffedBytes {
 public:
  // Of `coded`, up to the first marker.
  void assign(std::span<const std::byte> coded);

  // Followed by JpegBits::kSlack zeros.
  const std::uint8_t* data() const noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return size_; }
  std::uint64_t bits() const noexcept { return std::uint64_t{size_} * 8; }
  // Where byte `at` <= size() stood among the coded ones.
  std::size_t coded_place(std::size_t at) const noexcept;

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t size_ = 0;
  std::vector<std::size_t> stuffed_;  // a zero stood before each of these bytes
};

}  // namespace headrace
