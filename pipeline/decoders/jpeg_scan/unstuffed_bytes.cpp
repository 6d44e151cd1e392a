#include "headrace/pipeline/decoders/jpeg_scan/unstuffed_bytes.h"

#include <algorithm>
#include <cstring>

namespace headrace {
namespace {

constexpr std::uint8_t kOnes = 0xFF;

}  // namespace

void UnstuffedBytes::reserve(std::size_t coded_bytes) {
  bytes_.resize(std::max(bytes_.size(), coded_bytes + kSlack));
}

void UnstuffedBytes::assign(std::span<const std::byte> coded) noexcept {
  size_ = passed_ = stuffed_ = 0;
  for (std::size_t from = 0; from < coded.size();) {
    const auto* begin = coded.data() + from;
    const auto* ones = static_cast<const std::byte*>(std::memchr(begin, kOnes, coded.size() - from));
    const std::size_t plain = ones != nullptr ? static_cast<std::size_t>(ones - begin) : coded.size() - from;
    std::memcpy(bytes_.data() + size_, begin, plain);
    size_ += plain;
    from += plain;
    if (coded.size() - from < 2 || coded[from + 1] != std::byte{0}) break;  // a marker, or the end
    bytes_[size_++] = kOnes;
    from += 2;
  }
  std::memset(bytes_.data() + size_, 0, kSlack);
}

std::size_t UnstuffedBytes::coded_place(std::size_t at) noexcept {
  stuffed_ += static_cast<std::size_t>(std::count(bytes_.data() + passed_, bytes_.data() + at, kOnes));
  passed_ = at;
  return at + stuffed_;
}

}  // namespace headrace
