// The entropy stream of a JPEG: codes, bits, the index.
#include "headrace/pipeline/decoders/jpeg_scan/jpeg_scan.h"
#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/pipeline/decoders/jpeg_scan/entropy_bit_reader.h"
#include "headrace/pipeline/decoders/jpeg_scan/huffman_code.h"
#include "headrace/pipeline/decoders/jpeg_scan/jpeg_index.h"
#include "headrace/pipeline/decoders/jpeg_scan/unstuffed_bytes.h"
#include "headrace/tests/support/images.h"
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

using WordCounts = std::array<std::uint8_t, HuffmanCode::kMaxLength>;
using BlockOfLevels = std::array<std::int16_t, 64>;

// One block at a time, against a reader that takes one bit after the other as the standard says.

constexpr std::array<int, 64> kZigzag = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                         12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                         35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                         58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

struct OneByOne {
  const std::vector<std::uint8_t>& bytes;
  const HuffmanCode& code;
  std::uint64_t at = 0;

  int bit() {
    const int value = bytes[at / 8] >> (7 - at % 8) & 1;
    ++at;
    return value;
  }
  std::optional<int> symbol() {
    std::uint64_t word = 0;
    for (int length = 1; length <= HuffmanCode::kMaxLength; ++length) {
      word = word << 1 | static_cast<std::uint64_t>(bit());
      const HuffmanCode::Symbol read = code.read(word << (64 - length));
      if (read.length == length) return read.value;
    }
    return std::nullopt;
  }
  int coefficient(int size) {
    int value = 0;
    for (int i = 0; i < size; ++i) value = value * 2 + bit();
    return size > 0 && value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
  }
  // The AC coefficients of a block; nothing where they are damaged.
  std::optional<BlockOfLevels> block() {
    BlockOfLevels levels{};
    for (int place = 1; place < 64; ++place) {
      const std::optional<int> read = symbol();
      if (!read) return std::nullopt;
      const int run = *read >> 4, size = *read & 15;
      if (size == 0 && run != 15) return levels;
      place += run;
      const int value = coefficient(size);
      if (place > 63) return std::nullopt;
      levels[static_cast<std::size_t>(kZigzag[static_cast<std::size_t>(place)])] =
          static_cast<std::int16_t>(value);
    }
    return levels;
  }
};

// Codes as files have them: with few short words, with many long ones, without an end of block.
std::vector<HuffmanCode> codes() {
  std::vector<HuffmanCode> all(3);
  EXPECT_TRUE(
      all[0].assign(WordCounts{0, 1, 2, 3}, std::vector<std::uint8_t>{0x01, 0x00, 0x11, 0xF0, 0x02, 0x31}));
  std::vector<std::uint8_t> many;
  for (int run = 0; run < 16; ++run) {
    for (int size = 1; size <= 10; ++size) many.push_back(static_cast<std::uint8_t>(run << 4 | size));
  }
  many.push_back(0x00);
  many.push_back(0xF0);
  std::shuffle(many.begin(), many.end(), std::mt19937(3));
  EXPECT_TRUE(all[1].assign(WordCounts{0, 2, 1, 3, 1, 1, 0, 1, 1, 2, 10, 20, 30, 40, 25, 25}, many));
  EXPECT_TRUE(all[2].assign(WordCounts{1, 1, 1}, std::vector<std::uint8_t>{0x01, 0x21, 0xF0}));
  return all;
}

class EntropyBitReaderTest : public testing::Test {
 protected:
  // From bit `at` on: three blocks, or as many as are sound.
  void check(const AcCode& ac, const std::vector<std::uint8_t>& bytes, std::uint64_t at) {
    OneByOne oracle{.bytes = bytes, .code = ac.code, .at = at};
    EntropyBitReader reader(bytes.data(), at), skipper(bytes.data(), at);
    for (int block = 0; block < 3; ++block) {
      const std::optional<BlockOfLevels> expected = oracle.block();
      BlockOfLevels levels{};
      ASSERT_EQ(reader.read_ac(ac, levels.data()), expected.has_value()) << "at bit " << at;
      ASSERT_EQ(skipper.skip_ac(ac), expected.has_value()) << "at bit " << at;
      if (!expected) return;
      ++blocks_;
      ASSERT_EQ(levels, *expected) << "at bit " << at;
      ASSERT_EQ(reader.at(), oracle.at);
      ASSERT_EQ(skipper.at(), oracle.at);
    }
  }

  int blocks_ = 0;
};

TEST_F(EntropyBitReaderTest, ReadsWhatTheStandardSaysOfRandomBits) {
  std::mt19937 random(5);
  for (const HuffmanCode& code : codes()) {
    const auto read = std::make_unique<AcReadTable>();
    const auto skip = std::make_unique<AcSkipTable>();
    read->assign(code);
    skip->assign(code);
    for (int density = 1; density < 10; ++density) {
      std::bernoulli_distribution one(0.1 * density);
      std::vector<std::uint8_t> bytes(1500 + UnstuffedBytes::kSlack);
      for (std::uint8_t& byte : bytes) {
        for (int i = 0; i < 8; ++i) byte = static_cast<std::uint8_t>(byte * 2 + (one(random) ? 1 : 0));
      }
      for (std::uint64_t at = 0; at < 8 * 700; ++at) {
        check({.code = code, .read = *read, .skip = *skip}, bytes, at);
        if (HasFatalFailure()) FAIL() << "of " << density << " in ten ones";
      }
    }
  }
  EXPECT_GT(blocks_, 50'000);
}

TEST_F(EntropyBitReaderTest, ReadsDifferencesOfAllSizes) {
  HuffmanCode code;
  ASSERT_TRUE(code.assign(WordCounts{0, 1, 5, 1, 1, 1, 1, 1, 1},
                          std::vector<std::uint8_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  std::mt19937 random(6);
  std::vector<std::uint8_t> bytes(4000 + UnstuffedBytes::kSlack);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  OneByOne oracle{.bytes = bytes, .code = code};
  EntropyBitReader reader(bytes.data(), 0);
  int count = 0;
  for (int difference = 0; reader.at() < 4000 * 8; ++count) {
    const std::optional<int> size = oracle.symbol();
    ASSERT_EQ(reader.read_dc_difference(code, difference), size.has_value());
    if (!size) break;
    ASSERT_EQ(difference, oracle.coefficient(*size));
    ASSERT_EQ(reader.at(), oracle.at);
  }
  EXPECT_GT(count, 20);
}

Bytes photograph(const JpegOptions& options = {}) { return encode_jpeg(make_picture(200, 300, 3, 4), options); }

std::unique_ptr<const JpegIndex> index_with(JpegScan& scan, std::span<const std::byte> encoded) {
  return scan.open(encoded, true) && scan.finish() ? scan.take_index() : nullptr;
}

std::unique_ptr<const JpegIndex> index_alone(std::span<const std::byte> encoded) {
  JpegScan scan;
  return index_with(scan, encoded);
}

TEST(JpegIndex, KnowsTheImageItWasMadeFrom) {
  const Bytes encoded = photograph();
  const auto index = index_alone(encoded);
  ASSERT_NE(index, nullptr);
  EXPECT_EQ(index->size().height, 200);
  EXPECT_EQ(index->size().width, 300);
  EXPECT_EQ(index->content(), JpegIndex::content_of(encoded));
  EXPECT_NE(index->content(), JpegIndex::content_of(photograph({.quality = 89})));
  EXPECT_LT(index->bytes(), encoded.size() / 5);
}

TEST(JpegIndex, EntriesFollowOneAnother) {
  const Bytes encoded = photograph({.standard_tables = false});
  const auto index = index_alone(encoded);
  ASSERT_NE(index, nullptr);
  for (std::int64_t row = 0; row < 13; ++row) {
    const auto bits = static_cast<std::uint64_t>(index->row(encoded, row).size()) * 8;
    for (std::int64_t i = 0; i < index->intervals(); ++i) {
      EXPECT_LT(index->entry(row, i).bit, index->entry(row, i + 1).bit);
    }
    EXPECT_LT(index->entry(row, 0).bit, 8U) << "in its first byte";
    EXPECT_LE(index->entry(row, index->intervals()).bit, bits);
  }
}

TEST(JpegIndex, OthersHaveNone) {
  JpegScan scan;
  EXPECT_EQ(index_with(scan, {}), nullptr);
  EXPECT_EQ(index_with(scan, photograph({.progressive = true})), nullptr);
  EXPECT_EQ(index_with(scan, encode_png(make_picture(20, 20, 3, 1))), nullptr);
  const Bytes encoded = photograph();
  for (std::size_t size = 0; size < encoded.size(); size += 97) {
    EXPECT_EQ(index_with(scan, std::span(encoded).first(size)), nullptr) << size;
  }
  EXPECT_NE(index_with(scan, encoded), nullptr) << "the same scan of a good one";
}

// Whether such a file can be decoded depends on how far a decoder reads ahead: with an index and without one,
// different records would be bad.
TEST(JpegIndex, AFileWithoutItsLastMarkerHasNone) {
  for (const int width : {23, 300}) {
    const Bytes whole = encode_jpeg(make_picture(8, width, 1, 3));
    EXPECT_NE(index_alone(whole), nullptr);
    for (const std::size_t missing : {1, 2}) {
      EXPECT_EQ(index_alone(std::span(whole).first(whole.size() - missing)), nullptr) << missing;
    }
    Bytes other = whole;
    other.back() = std::byte{0xD3};
    EXPECT_EQ(index_alone(other), nullptr) << "a restart";
    other.back() = std::byte{0};
    EXPECT_EQ(index_alone(other), nullptr) << "stuffed ones";
  }
}

TEST(JpegIndex, RestartMarkersBetweenRowsAreFine) {
  for (const int rows : {1, 2, 5}) EXPECT_NE(index_alone(photograph({.restart_rows = rows})), nullptr) << rows;
}

// Whose intervals take more bits than 16 can count.
Bytes noise_jpeg() {
  Picture picture = make_picture(40, 3000, 3, 1);
  std::uint32_t state = 1;
  for (auto& value : picture.samples)
    value = static_cast<std::uint8_t>((state = state * 1664525U + 1013904223U) >> 24);
  return encode_jpeg(picture, {.quality = 100});
}

TEST(JpegIndex, IsTheSameWhenItWasWrittenAndRead) {
  JpegIndex read;
  for (const Bytes& encoded :
       {photograph(), encode_jpeg(make_picture(9, 7, 1, 1)), photograph({.restart_rows = 2}), noise_jpeg()}) {
    const auto index = index_alone(encoded);
    ASSERT_NE(index, nullptr);
    std::vector<std::byte> bytes;
    index->append_to(bytes);
    ASSERT_TRUE(read.assign(bytes));
    EXPECT_EQ(read.content(), index->content());
    EXPECT_EQ(read.size().height, index->size().height);
    EXPECT_EQ(read.interval(), index->interval());
    for (std::int64_t row = 0; row < (index->size().height + 15) / 16; ++row) {
      EXPECT_EQ(read.row(encoded, row).data(), index->row(encoded, row).data());
      for (std::int64_t i = 0; i <= index->intervals(); ++i) {
        EXPECT_EQ(read.entry(row, i).bit, index->entry(row, i).bit);
        EXPECT_EQ(read.entry(row, i).predictors, index->entry(row, i).predictors);
      }
    }
    for (std::size_t size = 0; size < bytes.size(); size += 1 + size / 50)
      EXPECT_FALSE(read.assign(std::span(bytes).first(size))) << size;
    bytes.push_back({});
    EXPECT_FALSE(read.assign(bytes));
    bytes.pop_back();
    EXPECT_TRUE(read.assign(bytes));
    bytes[10] = std::byte{1};
    EXPECT_FALSE(read.assign(bytes)) << "a height that no JPEG has";
  }
}

// Whatever an index says, nothing beyond the image is read.
TEST(JpegIndex, OfOtherNumbersReadsNothingOutsideOfTheImage) {
  const Bytes encoded = photograph();
  std::vector<std::byte> bytes;
  index_alone(encoded)->append_to(bytes);
  ImageDecoder decoder;
  JpegIndex index;
  std::vector<std::uint8_t> pixels(20 * 30 * 3);
  std::uint64_t state = 1;
  for (int change = 0; change < 2000; ++change) {
    std::vector<std::byte> changed = bytes;
    for (int i = 0; i <= change % 3; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      changed[(state >> 33) % changed.size()] = static_cast<std::byte>(state >> 24);
    }
    if (!index.assign(changed)) continue;
    try {
      decoder.decode_window(encoded, index, {.top = 100, .left = 200, .height = 20, .width = 30}, pixels);
    } catch (const Error&) {
    }
  }
}

}  // namespace
}  // namespace headrace::test
