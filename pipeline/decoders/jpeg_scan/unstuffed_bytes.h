// Entropy-coded data of a JPEG without the zeros stuffed after each 0xFF (ITU-T T.81, B.1.1.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace {

// A reusable buffer.
class UnstuffedBytes {
 public:
  // Readable bytes after the end: more than EntropyBitReader reads of a damaged block.
  static constexpr std::size_t kSlack = 320;

  // Allocates what assign() needs for this many coded bytes.
  void reserve(std::size_t coded_bytes);
  // Unstuffs `coded` up to the first marker. REQUIRES: reserve() allowed for as many bytes.
  void assign(std::span<const std::byte> coded) noexcept;

  // Returns the bytes, followed by kSlack zeros.
  const std::uint8_t* data() const noexcept { return bytes_.data(); }
  std::size_t size() const noexcept { return size_; }
  std::uint64_t bits() const noexcept { return std::uint64_t{size_} * 8; }
  // Returns the position of byte `at` in the coded bytes. REQUIRES: `at` <= size(), and is no less than in the
  // call before.
  std::size_t coded_place(std::size_t at) noexcept;

 private:
  std::vector<std::uint8_t> bytes_;
  std::size_t size_ = 0;
  std::size_t passed_ = 0;   // bytes, by coded_place()
  std::size_t stuffed_ = 0;  // zeros removed before them
};

}  // namespace headrace
