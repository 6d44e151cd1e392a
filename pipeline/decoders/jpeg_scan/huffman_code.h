// A JPEG's Huffman code (ITU-T T.81, C.2).
#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace headrace {

class HuffmanCode {
 public:
  struct Symbol {
    int value = 0;
    int length = 0;  // 0: no codeword matches
  };
  static constexpr int kMaxLength = 16;
  // `counts[i]` codewords of i + 1 bits; their symbols in order of length, then zeros.
  struct Definition {
    std::array<std::uint8_t, kMaxLength> counts{};
    std::array<std::uint8_t, 256> symbols{};
    bool operator==(const Definition&) const = default;
  };
  static constexpr int kLookup = 11;  // index bits of the lookup table

  // Returns false if it is not a prefix code, or uses the codeword of all ones, which the format reserves. Costs
  // next to nothing if the code had the same definition before, cleared or not.
  bool assign(std::span<const std::uint8_t, kMaxLength> counts, std::span<const std::uint8_t> symbols) noexcept;
  void clear() noexcept { empty_ = true; }
  bool empty() const noexcept { return empty_; }
  const Definition& definition() const noexcept { return definition_; }

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

  bool empty_ = true, is_prefix_code_ = false;
  Definition definition_;
  std::array<Short, 1 << kLookup> lookup_{};
  std::array<std::uint32_t, kMaxLength + 1> first_{};  // first codeword of each length
  std::array<std::size_t, kMaxLength + 1> place_{};    // of its symbol
};

}  // namespace headrace
