#include "headrace/pipeline/decoders/jpeg_scan/jpeg_index.h"
#include "headrace/pipeline/decoders/jpeg_scan/jpeg_scan.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

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

}  // namespace
}  // namespace headrace::test
