#include "headrace/pipeline/decoders/jpeg_index/entropy_bits.h"

#include <algorithm>

namespace headrace {

void UnstuffedBytes::assign(std::span<const std::byte> coded) {
  constexpr int kOnes = 0xFF;
  bytes_.resize(std::max(bytes_.size(), coded.size() + EntropyBitReader::kSlack));
  stuffed_.clear();
  size_ = 0;
  for (std::size_t from = 0; from < coded.size();) {
    const auto* begin = coded.data() + from;
    const auto* ones = static_cast<const std::byte*>(std::memchr(begin, kOnes, coded.size() - from));
    const std::size_t plain = ones != nullptr ? static_cast<std::size_t>(ones - begin) : coded.size() - from;
    std::memcpy(bytes_.data() + size_, begin, plain);
    size_ += plain;
    from += plain;
    if (coded.size() - from < 2 || coded[from + 1] != std::byte{0}) break;  // a marker, or the end
    bytes_[size_++] = kOnes;
    stuffed_.push_back(size_);
    from += 2;
  }
  std::memset(bytes_.data() + size_, 0, EntropyBitReader::kSlack);
}

std::size_t UnstuffedBytes::coded_place(std::size_t at) const noexcept {
  const auto before = std::ranges::upper_bound(stuffed_, at) - stuffed_.begin();
  return at + static_cast<std::size_t>(before);
}

}  // namespace headrace
