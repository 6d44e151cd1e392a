#include "headrace/pipeline/decoders/jpeg_index/huffman_code.h"

#include <gtest/gtest.h>

#include <vector>

namespace headrace {
namespace {

using Counts = std::array<std::uint8_t, HuffmanCode::kMaxLength>;

// Of T.81, table K.3: the levels of luminance.
constexpr Counts kLuminance = {0, 1, 5, 1, 1, 1, 1, 1, 1};
const std::vector<std::uint8_t> kSizes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

void expect_each_word_is_read(const HuffmanCode& code) {
  for (const std::uint8_t symbol : code.symbols()) {
    const HuffmanCode::Codeword word = code.codeword(symbol);
    ASSERT_GT(word.length, 0);
    for (const std::uint64_t after : {std::uint64_t{0}, ~std::uint64_t{0}}) {
      const std::uint64_t bits = std::uint64_t{word.bits} << (64 - word.length) | after >> word.length;
      EXPECT_EQ(code.read(bits).value, symbol);
      EXPECT_EQ(code.read(bits).length, word.length);
    }
  }
}

TEST(HuffmanCode, ReadsWhatTheStandardWrites) {
  HuffmanCode code;
  ASSERT_TRUE(code.assign(kLuminance, kSizes));
  EXPECT_EQ(code.codeword(0).bits, 0b00U);
  EXPECT_EQ(code.codeword(5).bits, 0b110U);
  EXPECT_EQ(code.codeword(11).bits, 0b111111110U);
  EXPECT_EQ(code.codeword(11).length, 9);
  expect_each_word_is_read(code);
  EXPECT_EQ(code.read(~std::uint64_t{0}).length, 0) << "all ones are no codeword";
}

TEST(HuffmanCode, ReadsWordsOfAllLengths) {
  Counts counts;
  counts.fill(1);
  std::vector<std::uint8_t> symbols;
  for (int i = 0; i < HuffmanCode::kMaxLength; ++i) symbols.push_back(static_cast<std::uint8_t>(200 - i));
  HuffmanCode code;
  ASSERT_TRUE(code.assign(counts, symbols));
  expect_each_word_is_read(code);
}

TEST(HuffmanCode, WhatIsNoPrefixCodeIsRefused) {
  HuffmanCode code;
  EXPECT_FALSE(code.assign(Counts{2}, std::vector<std::uint8_t>{0, 1})) << "uses the codeword of all ones";
  EXPECT_FALSE(code.assign(Counts{3}, std::vector<std::uint8_t>{0, 1, 2}));
  EXPECT_FALSE(code.assign(Counts{1, 2}, std::vector<std::uint8_t>{0, 1, 2}));
  EXPECT_FALSE(code.assign(Counts{1}, std::vector<std::uint8_t>{0, 1})) << "one symbol too many";
}

TEST(HuffmanCode, ExtendingLeavesAllWordsAsTheyAre) {
  HuffmanCode code, extended;
  const std::vector<std::uint8_t> few = {3, 7, 1};
  ASSERT_TRUE(code.assign(Counts{1, 1, 1}, few));
  ASSERT_TRUE(extended.assign(Counts{1, 1, 1}, few));
  ASSERT_TRUE(extended.extend(12));
  for (const std::uint8_t symbol : few) EXPECT_EQ(extended.codeword(symbol).bits, code.codeword(symbol).bits);
  for (int symbol = 0; symbol <= 12; ++symbol) EXPECT_GT(extended.codeword(symbol).length, 0) << symbol;
  expect_each_word_is_read(extended);
}

TEST(HuffmanCode, WithoutRoomItIsNotExtended) {
  Counts counts;  // all words but that of ones, of 16 bits
  counts.fill(1);
  std::vector<std::uint8_t> symbols(HuffmanCode::kMaxLength);
  for (std::size_t i = 0; i < symbols.size(); ++i) symbols[i] = static_cast<std::uint8_t>(100 + i);
  HuffmanCode code;
  ASSERT_TRUE(code.assign(counts, symbols));
  EXPECT_FALSE(code.extend(0));
}

}  // namespace
}  // namespace headrace
