#include "headrace/pipeline/stages/jpeg_maps.h"

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
  const JpegMap* find(JpegMaps& maps, std::uint64_t record, const Bytes& encoded) {
    return maps.find(record, encoded, decoder_);
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

TEST_F(JpegMapsTest, AFileThatWasWrittenAnewHasNone) {
  JpegMaps maps(1, budget_);
  const Bytes before = picture(1), after = picture(2);
  const JpegMap* first = find(maps, 0, before);
  EXPECT_EQ(find(maps, 0, after), nullptr) << "the map would lie";
  EXPECT_EQ(find(maps, 0, before), first);
}

TEST_F(JpegMapsTest, WhatHasNoMapIsLookedAtOnce) {
  JpegMaps maps(1, budget_);
  const Bytes encoded = picture(1, {.progressive = true});
  const std::uint64_t before = maps.bytes();
  for (int i = 0; i < 2; ++i) EXPECT_EQ(find(maps, 0, encoded), nullptr);
  EXPECT_EQ(maps.bytes(), before);
}

TEST_F(JpegMapsTest, WithoutRoomThereAreNone) {
  for (const std::uint64_t limit : {std::uint64_t{8}, std::uint64_t{800}}) {  // no place, no map
    MemoryBudget small("memory_budget_bytes", limit);
    JpegMaps maps(1, small);
    for (int i = 0; i < 2; ++i) EXPECT_EQ(find(maps, 0, picture(1)), nullptr);
    EXPECT_LE(small.used(), limit / 8);
  }
}

TEST_F(JpegMapsTest, ManyThreadsGetTheSame) {
  constexpr std::uint64_t kRecords = 8;
  JpegMaps maps(kRecords, budget_);
  std::vector<Bytes> images;
  for (std::uint64_t i = 0; i < kRecords; ++i) images.push_back(picture(i));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      ImageDecoder decoder;
      for (int pass = 0; pass < 5; ++pass) {
        for (std::uint64_t i = 0; i < kRecords; ++i) {
          const JpegMap* map = maps.find(i, images[i], decoder);
          ASSERT_NE(map, nullptr);
          EXPECT_EQ(map->content(), JpegMap::content_of(images[i]));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget_.used(), maps.bytes());
}

}  // namespace
}  // namespace headrace
