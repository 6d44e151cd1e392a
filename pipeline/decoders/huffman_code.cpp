#include "headrace/pipeline/decoders/huffman_code.h"

#include <algorithm>
#include <numeric>

namespace headrace {

bool HuffmanCode::assign(std::span<const std::uint8_t, kLongest> counts,
                         std::span<const std::uint8_t> symbols) noexcept {
  const int size = std::accumulate(counts.begin(), counts.end(), 0);
  if (size > 256 || static_cast<std::size_t>(size) != symbols.size()) return false;
  std::ranges::copy(counts, counts_.begin());
  std::ranges::copy(symbols, symbols_.begin());
  size_ = symbols.size();
  return derive();
}

bool HuffmanCode::derive() noexcept {
  words_.fill({});
  lookup_.fill({});
  std::uint32_t word = 0;
  std::size_t place = 0;
  for (int length = 1; length <= kLongest; ++length, word <<= 1) {
    first_[static_cast<std::size_t>(length)] = word;
    place_[static_cast<std::size_t>(length)] = place;
    const int count = counts_[static_cast<std::size_t>(length - 1)];
    for (int i = 0; i < count; ++i, ++word, ++place) {
      const std::uint8_t symbol = symbols_[place];
      if (words_[symbol].length == 0) words_[symbol] = {.bits = word, .length = length};
      if (length > kLookup) continue;
      const int free = kLookup - length;
      if (word >> length != 0) return false;
      std::fill_n(lookup_.begin() + (word << free), std::size_t{1} << free,
                  Short{.value = symbol, .length = static_cast<std::uint8_t>(length)});
    }
    if (count > 0 && word >= std::uint32_t{1} << length) return false;
  }
  return true;
}

bool HuffmanCode::extend(int most) noexcept {
  for (int symbol = 0; symbol <= most; ++symbol) {
    if (word(symbol).length != 0) continue;
    if (size_ == symbols_.size() || counts_[kLongest - 1] == 255) return false;
    symbols_[size_++] = static_cast<std::uint8_t>(symbol);
    ++counts_[kLongest - 1];
  }
  return derive();
}

HuffmanCode::Symbol HuffmanCode::read_long(std::uint64_t bits) const noexcept {
  for (int length = kLookup + 1; length <= kLongest; ++length) {
    const auto at = static_cast<std::size_t>(length);
    const auto word = static_cast<std::uint32_t>(bits >> (64 - length));
    if (word >= first_[at] && word - first_[at] < counts_[at - 1]) {
      return {.value = symbols_[place_[at] + (word - first_[at])], .length = length};
    }
  }
  return {};
}

}  // namespace headrace
