// A JPEG's Huffman code (ITU-T T.81, C.2): its lengths and symbols, and what it takes to read and write it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace headrace {

class HuffmanCode {
 public:
  struct Word {
    std::uint32_t bits = 0;
    int length = 0;  // 0: the code has no such symbol
  };
  struct Symbol {
    int value = 0;
    int length = 0;  // 0: these bits begin no word
  };
  static constexpr int kLongest = 16;
  static constexpr int kLookup = 11;  // bits of a word that are looked up at once

  // `counts[i]` words of i + 1 bits, their symbols in order of length. False where that is no prefix code, or one
  // that uses the word of ones only, which the format reserves.
  bool assign(std::span<const std::uint8_t, kLongest> counts, std::span<const std::uint8_t> symbols) noexcept;
  void clear() noexcept { size_ = 0; }
  bool empty() const noexcept { return size_ == 0; }

  // Gives each of 0 ... `most` that the code lacks a word of 16 bits; all other words stay. False where there is
  // no room for them.
  bool extend(int most) noexcept;

  const Word& word(int symbol) const noexcept { return words_[static_cast<std::size_t>(symbol)]; }
  std::span<const std::uint8_t, kLongest> counts() const noexcept { return counts_; }
  std::span<const std::uint8_t> symbols() const noexcept { return std::span(symbols_).first(size_); }

  // The symbol whose word `bits` begins with, the first bit being the highest of 64.
  Symbol read(std::uint64_t bits) const noexcept {
    const Symbol found = read_short(bits);
    return found.length != 0 ? found : read_long(bits);
  }
  // The same where its word has at most kLookup bits, else nothing.
  Symbol read_short(std::uint64_t bits) const noexcept {
    const Short& found = lookup_[bits >> (64 - kLookup)];
    return {.value = found.value, .length = found.length};
  }

 private:
  struct Short {
    std::uint8_t value = 0, length = 0;
  };

  bool derive() noexcept;
  Symbol read_long(std::uint64_t bits) const noexcept;

  std::array<std::uint8_t, kLongest> counts_{};
  std::array<std::uint8_t, 256> symbols_{};
  std::size_t size_ = 0;
  std::array<Word, 256> words_{};
  std::array<Short, 1 << kLookup> lookup_{};
  std::array<std::uint32_t, kLongest + 1> first_{};  // word of each length
  std::array<std::size_t, kLongest + 1> place_{};    // of its symbol
};

}  // namespace headrace
