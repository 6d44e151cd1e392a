// A JPEG's Huffman code (ITU-T T.81, C.2), for reading and writing.
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace headrace {

class HuffmanCode {
 public:
  struct Codeword {
    std::uint32_t bits = 0;
    int length = 0;  // 0: the code has no such symbol
  };
  struct Symbol {
    int value = 0;
    int length = 0;  // 0: no codeword matches
  };
  static constexpr int kMaxLength = 16;
  static constexpr int kLookup = 11;  // index bits of the lookup table

  // Assigns `counts[i]` codewords of i + 1 bits; the symbols in order of length. Returns false if it is not a
  // prefix code, or uses the codeword of all ones, which the format reserves.
  bool assign(std::span<const std::uint8_t, kMaxLength> counts, std::span<const std::uint8_t> symbols) noexcept;
  void clear() noexcept { size_ = 0; }
  bool empty() const noexcept { return size_ == 0; }

  // Gives each symbol in [0, max_symbol] that the code lacks a codeword of 16 bits; all others stay. Returns false
  // if there is no room.
  bool extend(int max_symbol) noexcept;

  const Codeword& codeword(int symbol) const noexcept { return codewords_[static_cast<std::size_t>(symbol)]; }
  std::span<const std::uint8_t, kMaxLength> counts() const noexcept { return counts_; }
  std::span<const std::uint8_t> symbols() const noexcept { return std::span(symbols_).first(size_); }

  // Returns the symbol whose codeword `bits` begins with; the first of the 64 bits is the highest.
  Symbol read(std::uint64_t bits) const noexcept {
    const Symbol found = read_short(bits);
    return found.length != 0 ? found : read_long(bits);
  }
  // Returns it if its codeword has at most kLookup bits, otherwise length 0.
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

  std::array<std::uint8_t, kMaxLength> counts_{};
  std::array<std::uint8_t, 256> symbols_{};
  std::size_t size_ = 0;
  std::array<Codeword, 256> codewords_{};
  std::array<Short, 1 << kLookup> lookup_{};
  std::array<std::uint32_t, kMaxLength + 1> first_{};  // first codeword of each length
  std::array<std::size_t, kMaxLength + 1> place_{};    // of its symbol in symbols_
};

// A table for skipping the AC coefficients of a block, several at a time. Made from the Huffman code of a
// component's AC coefficients (ITU-T T.81, F.1.2.2). Lists, for each value of the next bits, the coefficients that
// these determine entirely.
class AcSkipTable {
 public:
  static constexpr int kLookup = 11;  // bits
  static_assert(kLookup <= HuffmanCode::kLookup, "longer codewords are not in the lookup table");
  static constexpr int kMaxBits = kLookup + 15;
  static constexpr int kEnd = 128;  // added if an end-of-block code follows

  struct Step {
    std::uint8_t bits = 0;
    std::uint8_t coefficients = 255;  // 255: none is determined
  };

  void assign(const HuffmanCode& code) noexcept {
    for (std::uint32_t bits = 0; bits < steps_.size(); ++bits) steps_[bits] = step_of(code, bits);
  }

  // Returns the step for the next bits; the first of the 64 bits is the highest.
  Step next(std::uint64_t bits) const noexcept { return steps_[bits >> (64 - kLookup)]; }

 private:
  static Step step_of(const HuffmanCode& code, std::uint32_t bits) noexcept {
    Step step;
    int used = 0, coefficients = 0;
    for (std::uint64_t rest = std::uint64_t{bits} << (64 - kLookup); used < kLookup;) {
      const HuffmanCode::Symbol symbol = code.read_short(rest);
      if (symbol.length == 0 || symbol.length > kLookup - used) break;
      const int size = symbol.value & 15, run = symbol.value >> 4;
      const bool ends = size == 0 && run != 15;
      coefficients += ends ? kEnd : run + 1;
      if ((coefficients & (kEnd - 1)) > 63) break;  // more than a block has
      used += symbol.length + size;
      step = {.bits = static_cast<std::uint8_t>(used), .coefficients = static_cast<std::uint8_t>(coefficients)};
      if (ends) break;
      rest <<= symbol.length + size;
    }
    return step;
  }

  std::array<Step, 1 << kLookup> steps_{};
};

}  // namespace headrace
