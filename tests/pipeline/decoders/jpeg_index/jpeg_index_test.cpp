#include "headrace/pipeline/decoders/jpeg_index/jpeg_index.h"

#include <gtest/gtest.h>

#include "headrace/pipeline/decoders/jpeg_index/jpeg_cropper.h"
#include "headrace/tests/support/images.h"

namespace headrace {
namespace {

using namespace test;

Bytes photograph(const JpegOptions& options = {}) { return encode_jpeg(make_picture(200, 300, 3, 4), options); }

TEST(JpegIndex, KnowsTheImageItWasMadeFrom) {
  const Bytes encoded = photograph();
  const auto index = JpegIndexer().index(encoded);
  ASSERT_NE(index, nullptr);
  EXPECT_EQ(index->size().height, 200);
  EXPECT_EQ(index->size().width, 300);
  EXPECT_EQ(index->content(), JpegIndex::content_of(encoded));
  EXPECT_NE(index->content(), JpegIndex::content_of(photograph({.quality = 89})));
  EXPECT_LT(index->bytes(), encoded.size() / 5);
}

TEST(JpegIndex, EntriesFollowOneAnother) {
  const Bytes encoded = photograph({.standard_tables = false});
  const auto index = JpegIndexer().index(encoded);
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
  JpegIndexer indexer;
  EXPECT_EQ(indexer.index({}), nullptr);
  EXPECT_EQ(indexer.index(photograph({.progressive = true})), nullptr);
  EXPECT_EQ(indexer.index(encode_png(make_picture(20, 20, 3, 1))), nullptr);
  const Bytes encoded = photograph();
  for (std::size_t size = 0; size < encoded.size(); size += 97) {
    EXPECT_EQ(indexer.index(std::span(encoded).first(size)), nullptr) << size;
  }
  EXPECT_NE(indexer.index(encoded), nullptr) << "the same indexer on a good one";
}

// Whether such a file can be decoded depends on how far a decoder reads ahead: with an index and without one,
// different records would be bad.
TEST(JpegIndex, AFileWithoutItsLastMarkerHasNone) {
  for (const int width : {23, 300}) {
    const Bytes whole = encode_jpeg(make_picture(8, width, 1, 3));
    EXPECT_NE(JpegIndexer().index(whole), nullptr);
    for (const std::size_t missing : {1, 2}) {
      EXPECT_EQ(JpegIndexer().index(std::span(whole).first(whole.size() - missing)), nullptr) << missing;
    }
    Bytes other = whole;
    other.back() = std::byte{0xD3};
    EXPECT_EQ(JpegIndexer().index(other), nullptr) << "a restart";
    other.back() = std::byte{0};
    EXPECT_EQ(JpegIndexer().index(other), nullptr) << "stuffed ones";
  }
}

TEST(JpegIndex, RestartMarkersBetweenRowsAreFine) {
  for (const int rows : {1, 2, 5})
    EXPECT_NE(JpegIndexer().index(photograph({.restart_rows = rows})), nullptr) << rows;
}

TEST(JpegCropper, MakesASmallFileOfASmallWindow) {
  const Bytes encoded = photograph();
  const auto index = JpegIndexer().index(encoded);
  ASSERT_NE(index, nullptr);
  JpegCropper cropper;
  const auto part = cropper.crop(encoded, *index, {.top = 100, .left = 120, .height = 40, .width = 50});
  ASSERT_TRUE(part);
  EXPECT_LT(part->encoded.size(), encoded.size() / 4);
  EXPECT_LT(part->window.top, 32);
  EXPECT_LT(part->window.left, 32);
  EXPECT_EQ(part->window.height, 40);
  EXPECT_EQ(part->window.width, 50);
}

TEST(JpegCropper, LeavesNearlyWholeImagesAlone) {
  const Bytes encoded = photograph();
  const auto index = JpegIndexer().index(encoded);
  ASSERT_NE(index, nullptr);
  EXPECT_FALSE(JpegCropper().crop(encoded, *index, {.height = 200, .width = 300}));
  EXPECT_FALSE(JpegCropper().crop(encoded, *index, {.height = 100, .width = 290}))
      << "what lies below is not decoded anyway";
}

}  // namespace
}  // namespace headrace
