// Entropy-coded data of a JPEG without the zeros that are stuffed after each 0xFF (ITU-T T.81, B.1.1.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace {

// A reusable buffer.
class UnstuffedBytes {
 public:
  // Of `coded`, up to the first marker.
  void assign(std::span<const std::byte> coded);

  // Followed by EntropyBitReader::kSlack zeros.
  const std::uint8_t* data() const noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return size_; }
  std::uint64_t bits() const noexcept { return std::uint64_t{size_} * 8; }
  // The position of byte `at` <= size() in the coded bytes.
  std::size_t coded_place(std::size_t at) const noexcept;

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t size_ = 0;
  std::vector<std::size_t> stuffed_;  // the bytes that a stuffed zero was removed before
};

}  // namespace headrace
