#include "headrace/pipeline/decoders/jpeg_scan/huffman_code.h"

#include <algorithm>
#include <numeric>

namespace headrace {

bool HuffmanCode::assign(std::span<const std::uint8_t, kMaxLength> counts,
                         std::span<const std::uint8_t> symbols) noexcept {
  const int size = std::accumulate(counts.begin(), counts.end(), 0);
  if (size > 256 || static_cast<std::size_t>(size) != symbols.size()) return false;
  Definition definition;
  std::ranges::copy(counts, definition.counts.begin());
  std::ranges::copy(symbols, definition.symbols.begin());
  empty_ = symbols.empty();
  if (is_prefix_code_ && definition == definition_) return true;
  definition_ = definition;
  return is_prefix_code_ = derive();
}

bool HuffmanCode::derive() noexcept {
  lookup_.fill({});
  std::uint32_t codeword = 0;
  std::size_t place = 0;
  for (int length = 1; length <= kMaxLength; ++length, codeword <<= 1) {
    first_[static_cast<std::size_t>(length)] = codeword;
    place_[static_cast<std::size_t>(length)] = place;
    const int count = definition_.counts[static_cast<std::size_t>(length - 1)];
    for (int i = 0; i < count; ++i, ++codeword, ++place) {
      if (length > kLookup) continue;
      const int free = kLookup - length;
      if (codeword >> length != 0) return false;
      std::fill_n(lookup_.begin() + (codeword << free), std::size_t{1} << free,
                  Short{.value = definition_.symbols[place], .length = static_cast<std::uint8_t>(length)});
    }
    if (count > 0 && codeword >= std::uint32_t{1} << length) return false;
  }
  return true;
}

HuffmanCode::Symbol HuffmanCode::read_long(std::uint64_t bits) const noexcept {
  for (int length = kLookup + 1; length <= kMaxLength; ++length) {
    const auto at = static_cast<std::size_t>(length);
    const auto codeword = static_cast<std::uint32_t>(bits >> (64 - length));
    if (codeword >= first_[at] && codeword - first_[at] < definition_.counts[at - 1]) {
      return {.value = definition_.symbols[place_[at] + (codeword - first_[at])], .length = length};
    }
  }
  return {};
}

}  // namespace headrace
