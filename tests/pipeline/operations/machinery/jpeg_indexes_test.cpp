#include "headrace/pipeline/operations/machinery/jpeg_indexes.h"
#include "headrace/tests/support/image_windows.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

Bytes indexed_picture(std::uint64_t seed, const JpegOptions& options = {}) {
  return encode_jpeg(make_picture(64, 80, 3, seed), options);
}

class JpegIndexesTest : public ::testing::Test {
 protected:
  // The index that is kept of it, made if there is none; null where none is kept.
  const JpegIndex* find(JpegIndexes& indexes, std::uint64_t record, const Bytes& encoded) {
    if (indexes.find(record, encoded).index == nullptr) indexes.keep(record, index_of(decoder_, encoded));
    return indexes.find(record, encoded).index;
  }

  MemoryBudget budget_{"memory_budget_bytes", 0};
  ImageDecoder decoder_;
};

TEST_F(JpegIndexesTest, AnIndexIsMadeOnceAndKept) {
  const Bytes encoded = indexed_picture(1);
  {
    JpegIndexes indexes(3, budget_);
    const JpegIndex* first = find(indexes, 2, encoded);
    ASSERT_NE(first, nullptr);
    EXPECT_EQ(find(indexes, 2, encoded), first);
    EXPECT_GT(indexes.bytes(), first->bytes());
    EXPECT_EQ(budget_.used(), indexes.bytes());
  }
  EXPECT_EQ(budget_.used(), 0U);
}

TEST_F(JpegIndexesTest, NothingIsKnownOfAFileThatWasWrittenAnew) {
  JpegIndexes indexes(1, budget_);
  const Bytes before = indexed_picture(1), after = indexed_picture(2);
  const JpegIndex* first = find(indexes, 0, before);
  EXPECT_FALSE(indexes.find(0, after).good) << "the kept index would lie";
  indexes.keep(0, index_of(decoder_, after));
  EXPECT_FALSE(indexes.find(0, after).good) << "others may be using the first one";
  EXPECT_EQ(find(indexes, 0, before), first);
}

TEST_F(JpegIndexesTest, ThatAnImageIsGoodIsKeptByItsBytes) {
  JpegIndexes indexes(1, budget_);
  const Bytes encoded = indexed_picture(1);
  indexes.keep_good(0, encoded);
  EXPECT_TRUE(indexes.find(0, encoded).good);
  EXPECT_EQ(indexes.find(0, encoded).index, nullptr);
  EXPECT_FALSE(indexes.find(0, indexed_picture(2)).good);
  const JpegIndex* index = find(indexes, 0, encoded);
  ASSERT_NE(index, nullptr) << "one that is made later is kept";
  indexes.keep_good(0, encoded);
  EXPECT_EQ(indexes.find(0, encoded).index, index);
}

TEST_F(JpegIndexesTest, WithoutRoomForAnIndexItIsStillKeptThatTheImageIsGood) {
  MemoryBudget small("memory_budget_bytes", 800);
  JpegIndexes indexes(1, small);
  const Bytes encoded = indexed_picture(1);
  EXPECT_FALSE(indexes.is_full());
  indexes.keep(0, index_of(decoder_, encoded));
  EXPECT_TRUE(indexes.is_full());
  EXPECT_TRUE(indexes.find(0, encoded).good);
  EXPECT_EQ(indexes.find(0, encoded).index, nullptr);
  Bytes damaged = encoded;
  damaged.pop_back();
  EXPECT_FALSE(indexes.find(0, damaged).good) << "other bytes";
  EXPECT_LE(small.used(), 800U / 8);
}

TEST_F(JpegIndexesTest, WithoutAnyRoomNothingIsKnown) {
  MemoryBudget small("memory_budget_bytes", 8);
  JpegIndexes indexes(1, small);
  EXPECT_TRUE(indexes.is_full());
  indexes.keep(0, index_of(decoder_, indexed_picture(1)));
  indexes.keep_good(0, indexed_picture(1));
  EXPECT_FALSE(indexes.find(0, indexed_picture(1)).good);
  EXPECT_EQ(small.used(), 0U);
}

TEST_F(JpegIndexesTest, ManyThreadsGetTheSame) {
  constexpr std::uint64_t kPictures = 8;
  JpegIndexes indexes(kPictures, budget_);
  std::vector<Bytes> images;
  for (std::uint64_t i = 0; i < kPictures; ++i) images.push_back(indexed_picture(i));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      ImageDecoder decoder;
      for (int pass = 0; pass < 5; ++pass) {
        for (std::uint64_t i = 0; i < kPictures; ++i) {
          if (!indexes.find(i, images[i]).good) indexes.keep(i, index_of(decoder, images[i]));
          const JpegIndex* index = indexes.find(i, images[i]).index;
          ASSERT_NE(index, nullptr);
          EXPECT_EQ(index->content(), JpegIndex::content_of(images[i]));
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget_.used(), indexes.bytes());
}

}  // namespace
}  // namespace headrace::test
