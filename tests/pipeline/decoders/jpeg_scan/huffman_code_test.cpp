#include "headrace/pipeline/decoders/jpeg_scan/huffman_code.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using Counts = std::array<std::uint8_t, HuffmanCode::kMaxLength>;

// Of T.81, table K.3: the levels of luminance.
constexpr Counts kLuminance = {0, 1, 5, 1, 1, 1, 1, 1, 1};
const std::vector<std::uint8_t> kSizes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};

void expect_word(const HuffmanCode& code, std::uint64_t word, int length, int symbol) {
  for (const std::uint64_t after : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    const HuffmanCode::Symbol read = code.read(word << (64 - length) | after >> length);
    EXPECT_EQ(read.value, symbol);
    EXPECT_EQ(read.length, length);
  }
}

TEST(HuffmanCode, ReadsWhatTheStandardWrites) {
  HuffmanCode code;
  ASSERT_TRUE(code.assign(kLuminance, kSizes));
  expect_word(code, 0b00, 2, 0);
  expect_word(code, 0b010, 3, 1);
  expect_word(code, 0b110, 3, 5);
  expect_word(code, 0b1110, 4, 6);
  expect_word(code, 0b111111110, 9, 11);
  EXPECT_EQ(code.read(~std::uint64_t{0}).length, 0) << "all ones are no codeword";
}

TEST(HuffmanCode, ReadsWordsOfAllLengths) {
  Counts counts;
  counts.fill(1);
  std::vector<std::uint8_t> symbols;
  for (int i = 0; i < HuffmanCode::kMaxLength; ++i) symbols.push_back(static_cast<std::uint8_t>(200 - i));
  HuffmanCode code;
  ASSERT_TRUE(code.assign(counts, symbols));
  for (int i = 0; i < HuffmanCode::kMaxLength; ++i) expect_word(code, (1U << (i + 1)) - 2, i + 1, 200 - i);
}

TEST(HuffmanCode, WhatIsNoPrefixCodeIsRefused) {
  HuffmanCode code;
  EXPECT_FALSE(code.assign(Counts{2}, std::vector<std::uint8_t>{0, 1})) << "uses the codeword of all ones";
  EXPECT_FALSE(code.assign(Counts{3}, std::vector<std::uint8_t>{0, 1, 2}));
  EXPECT_FALSE(code.assign(Counts{1, 2}, std::vector<std::uint8_t>{0, 1, 2}));
  EXPECT_FALSE(code.assign(Counts{1}, std::vector<std::uint8_t>{0, 1})) << "one symbol too many";
}

}  // namespace
}  // namespace headrace::test
