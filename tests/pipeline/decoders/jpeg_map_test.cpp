#include "headrace/pipeline/decoders/jpeg_map.h"

#include <gtest/gtest.h>

#include "headrace/pipeline/decoders/jpeg_mapper.h"
#include "headrace/pipeline/decoders/jpeg_splicer.h"
#include "headrace/tests/support/images.h"

namespace headrace {
namespace {

using namespace test;

Bytes photograph(const JpegOptions& options = {}) { return encode_jpeg(make_picture(200, 300, 3, 4), options); }

TEST(JpegMap, KnowsTheImageItWasMadeOf) {
  const Bytes encoded = photograph();
  const auto map = JpegMapper().map(encoded);
  ASSERT_NE(map, nullptr);
  EXPECT_EQ(map->size().height, 200);
  EXPECT_EQ(map->size().width, 300);
  EXPECT_EQ(map->content(), JpegMap::content_of(encoded));
  EXPECT_NE(map->content(), JpegMap::content_of(photograph({.quality = 89})));
  EXPECT_LT(map->bytes(), encoded.size() / 5);
}

TEST(JpegMap, PlacesFollowOneAnother) {
  const Bytes encoded = photograph({.standard_tables = false});
  const auto map = JpegMapper().map(encoded);
  ASSERT_NE(map, nullptr);
  for (std::int64_t row = 0; row < 13; ++row) {
    const auto bits = static_cast<std::uint64_t>(map->row(encoded, row).size()) * 8;
    for (std::int64_t i = 0; i < map->stretches(); ++i) {
      EXPECT_LT(map->place(row, i).bit, map->place(row, i + 1).bit);
    }
    EXPECT_LT(map->place(row, 0).bit, 8U) << "in its first byte";
    EXPECT_LE(map->place(row, map->stretches()).bit, bits);
  }
}

TEST(JpegMap, OthersHaveNone) {
  JpegMapper mapper;
  EXPECT_EQ(mapper.map({}), nullptr);
  EXPECT_EQ(mapper.map(photograph({.progressive = true})), nullptr);
  EXPECT_EQ(mapper.map(encode_png(make_picture(20, 20, 3, 1))), nullptr);
  const Bytes encoded = photograph();
  for (std::size_t size = 0; size < encoded.size(); size += 97) {
    EXPECT_EQ(mapper.map(std::span(encoded).first(size)), nullptr) << size;
  }
  EXPECT_NE(mapper.map(encoded), nullptr) << "the same mapper on a good one";
}

// Whether such a file can be decoded depends on how far a decoder reads ahead: with a map and without it would be
// another record that is bad.
TEST(JpegMap, AFileWithoutItsLastMarkerHasNone) {
  for (const int width : {23, 300}) {
    const Bytes whole = encode_jpeg(make_picture(8, width, 1, 3));
    EXPECT_NE(JpegMapper().map(whole), nullptr);
    for (const std::size_t missing : {1, 2}) {
      EXPECT_EQ(JpegMapper().map(std::span(whole).first(whole.size() - missing)), nullptr) << missing;
    }
    Bytes other = whole;
    other.back() = std::byte{0xD3};
    EXPECT_EQ(JpegMapper().map(other), nullptr) << "a restart";
    other.back() = std::byte{0};
    EXPECT_EQ(JpegMapper().map(other), nullptr) << "stuffed ones";
  }
}

TEST(JpegMap, RestartMarkersBetweenRowsAreFine) {
  for (const int rows : {1, 2, 5})
    EXPECT_NE(JpegMapper().map(photograph({.restart_rows = rows})), nullptr) << rows;
}

TEST(JpegSplicer, MakesASmallFileOfASmallWindow) {
  const Bytes encoded = photograph();
  const auto map = JpegMapper().map(encoded);
  ASSERT_NE(map, nullptr);
  JpegSplicer splicer;
  const auto part = splicer.splice(encoded, *map, {.top = 100, .left = 120, .height = 40, .width = 50});
  ASSERT_TRUE(part);
  EXPECT_LT(part->encoded.size(), encoded.size() / 4);
  EXPECT_LT(part->window.top, 32);
  EXPECT_LT(part->window.left, 32);
  EXPECT_EQ(part->window.height, 40);
  EXPECT_EQ(part->window.width, 50);
}

TEST(JpegSplicer, LeavesNearlyWholeImagesAlone) {
  const Bytes encoded = photograph();
  const auto map = JpegMapper().map(encoded);
  ASSERT_NE(map, nullptr);
  EXPECT_FALSE(JpegSplicer().splice(encoded, *map, {.height = 200, .width = 300}));
  EXPECT_FALSE(JpegSplicer().splice(encoded, *map, {.height = 100, .width = 290}))
      << "what lies below is not decoded anyway";
}

}  // namespace
}  // namespace headrace
