#include "headrace/pipeline/decoders/jpeg_index/huffman_code.h"

#include <algorithm>
#include <numeric>

namespace headrace {

bool HuffmanCode::assign(std::span<const std::uint8_t, kMaxLength> counts,
                         std::span<const std::uint8_t> symbols) noexcept {
  const int size = std::accumulate(counts.begin(), counts.end(), 0);
  if (size > 256 || static_cast<std::size_t>(size) != symbols.size()) return false;
  std::ranges::copy(counts, counts_.begin());
  std::ranges::copy(symbols, symbols_.begin());
  size_ = symbols.size();
  return derive();
}

bool HuffmanCode::derive() noexcept {
  codewords_.fill({});
  lookup_.fill({});
  std::uint32_t codeword = 0;
  std::size_t place = 0;
  for (int length = 1; length <= kMaxLength; ++length, codeword <<= 1) {
    first_[static_cast<std::size_t>(length)] = codeword;
    place_[static_cast<std::size_t>(length)] = place;
    const int count = counts_[static_cast<std::size_t>(length - 1)];
    for (int i = 0; i < count; ++i, ++codeword, ++place) {
      const std::uint8_t symbol = symbols_[place];
      if (codewords_[symbol].length == 0) codewords_[symbol] = {.bits = codeword, .length = length};
      if (length > kLookup) continue;
      const int free = kLookup - length;
      if (codeword >> length != 0) return false;
      std::fill_n(lookup_.begin() + (codeword << free), std::size_t{1} << free,
                  Short{.value = symbol, .length = static_cast<std::uint8_t>(length)});
    }
    if (count > 0 && codeword >= std::uint32_t{1} << length) return false;
  }
  return true;
}

bool HuffmanCode::extend(int max_symbol) noexcept {
  for (int symbol = 0; symbol <= max_symbol; ++symbol) {
    if (codeword(symbol).length != 0) continue;
    if (size_ == symbols_.size() || counts_[kMaxLength - 1] == 255) return false;
    symbols_[size_++] = static_cast<std::uint8_t>(symbol);
    ++counts_[kMaxLength - 1];
  }
  return derive();
}

HuffmanCode::Symbol HuffmanCode::read_long(std::uint64_t bits) const noexcept {
  for (int length = kLookup + 1; length <= kMaxLength; ++length) {
    const auto at = static_cast<std::size_t>(length);
    const auto codeword = static_cast<std::uint32_t>(bits >> (64 - length));
    if (codeword >= first_[at] && codeword - first_[at] < counts_[at - 1]) {
      return {.value = symbols_[place_[at] + (codeword - first_[at])], .length = length};
    }
  }
  return {};
}

}  // namespace headrace
