#include "headrace/pipeline/operations/jpeg_maps.h"

#include <gtest/gtest.h>

#include <thread>

#include "headrace/tests/support/images.h"

namespace headrace {
namespace {

using namespace test;

Bytes picture(std::uint64_t seed, const JpegOptions& options = {}) {
  return encode_jpeg(make_picture(64, 80, 3, seed), options);
}

class JpegMapsTest : public ::testing::Test {
 protected:
  // The map that is kept of it, made if there is none; null where none is kept.
  const JpegMap* find(JpegMaps& maps, std::uint64_t record, const Bytes& encoded) {
    if (maps.find(record, encoded).map == nullptr) maps.make(record, encoded, decoder_);
    return maps.find(record, encoded).map;
  }

  MemoryBudget budget_{"memory_budget_bytes", 0};
  ImageDecoder decoder_;
};

TEST_F(JpegMapsTest, AMapIsMadeOnceAndKept) {
  const Bytes encoded = picture(1);
  {
    JpegMaps maps(3, budget_);
    const JpegMap* first = find(maps, 2, encoded);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(find(maps, 2, encoded), first);
    EXPECT_GT(maps.bytes(), first->bytes());
    EXPECT_EQ(budget_.used(), maps.bytes());
  }
  EXPECT_EQ(budget_.used(), 0U);
}

TEST_F(JpegMapsTest, NothingIsKnownOfAFileThatWasWrittenAnew) {
  JpegMaps maps(1, budget_);
  const Bytes before = picture(1), after = picture(2);
  const JpegMap* first = find(maps, 0, before);
  EXPECT_FALSE(maps.find(0, after).good) << "the kept map would lie";
  const KnownJpeg made = maps.make(0, after, decoder_);
  ASSERT_NE(made.made, nullptr) << "used once";
  EXPECT_EQ(made.map->content(), JpegMap::content_of(after));
  EXPECT_EQ(find(maps, 0, before), first);
}

TEST_F(JpegMapsTest, WhatHasNoMapIsNotKnownToBeGood) {
  JpegMaps maps(2, budget_);
  Bytes cut = picture(2);
  cut.resize(cut.size() - 2);
  const std::uint64_t before = maps.bytes();
  const Bytes images[] = {picture(1, {.progressive = true}), cut};
  for (std::uint64_t i = 0; i < 2; ++i) {
    EXPECT_FALSE(maps.find(i, images[i]).has_none) << "nobody has tried";
    EXPECT_FALSE(maps.make(i, images[i], decoder_).good);
    EXPECT_FALSE(maps.find(i, images[i]).good);
    EXPECT_TRUE(maps.find(i, images[i]).has_none);
  }
  EXPECT_EQ(maps.bytes(), before);
}

TEST_F(JpegMapsTest, ThatAnImageIsGoodIsKeptByItsBytes) {
  JpegMaps maps(1, budget_);
  const Bytes encoded = picture(1);
  maps.keep_good(0, encoded);
  EXPECT_TRUE(maps.find(0, encoded).good);
  EXPECT_EQ(maps.find(0, encoded).map, nullptr);
  EXPECT_FALSE(maps.find(0, picture(2)).good);
  const JpegMap* map = find(maps, 0, encoded);
  ASSERT_NE(map, nullptr) << "one that is made later is kept";
  maps.keep_good(0, encoded);
  EXPECT_EQ(maps.find(0, encoded).map, map);
}

TEST_F(JpegMapsTest, WithoutRoomForAMapItIsStillKeptThatTheImageIsGood) {
  MemoryBudget small("memory_budget_bytes", 800);
  JpegMaps maps(1, small);
  const Bytes encoded = picture(1);
  EXPECT_FALSE(maps.is_full());
  EXPECT_NE(maps.make(0, encoded, decoder_).made, nullptr);
  EXPECT_TRUE(maps.is_full());
  EXPECT_TRUE(maps.find(0, encoded).good);
  EXPECT_EQ(maps.find(0, encoded).map, nullptr);
  Bytes damaged = encoded;
  damaged.pop_back();
  EXPECT_FALSE(maps.find(0, damaged).good) << "other bytes";
  EXPECT_LE(small.used(), 800U / 8);
}

TEST_F(JpegMapsTest, WithoutAnyRoomNothingIsKnown) {
  MemoryBudget small("memory_budget_bytes", 8);
  JpegMaps maps(1, small);
  EXPECT_TRUE(maps.is_full());
  EXPECT_TRUE(maps.make(0, picture(1), decoder_).good);
  maps.keep_good(0, picture(1));
  EXPECT_FALSE(maps.find(0, picture(1)).good);
  EXPECT_EQ(small.used(), 0U);
}

TEST_F(JpegMapsTest, ManyThreadsGetTheSame) {
  constexpr std::uint64_t kPictures = 8;
  JpegMaps maps(kPictures, budget_);
  std::vector<Bytes> images;
  for (std::uint64_t i = 0; i < kPictures; ++i) images.push_back(picture(i));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      ImageDecoder decoder;
      for (int pass = 0; pass < 5; ++pass) {
        for (std::uint64_t i = 0; i < kPictures; ++i) {
          KnownJpeg known = maps.find(i, images[i]);
          if (!known.good) known = maps.make(i, images[i], decoder);
          ASSERT_NE(known.map, nullptr);
          EXPECT_EQ(known.map->content(), JpegMap::content_of(images[i]));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget_.used(), maps.bytes());
}

}  // namespace
}  // namespace headrace
