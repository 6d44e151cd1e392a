#include "headrace/pipeline/engine/batch_set.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(BatchSet, JoinsWhatFollowsWithoutAGap) {
  BatchSet batches(3);
  for (const std::uint64_t added : {6, 4, 9, 5}) batches.add(added);
  EXPECT_EQ(batches.first(), 3U);
  EXPECT_EQ(batches.end(), 10U);
  EXPECT_THAT(batches.ahead(), ElementsAre(4, 5, 6, 9));
  batches.add(3);
  EXPECT_EQ(batches.first(), 7U);
  EXPECT_THAT(batches.ahead(), ElementsAre(9));
  for (const std::uint64_t added : {8, 7}) batches.add(added);
  EXPECT_EQ(batches.first(), 10U);
  EXPECT_EQ(batches.end(), 10U);
  EXPECT_THAT(batches.ahead(), IsEmpty());
}

TEST(BatchSet, RemovesAnyBatch) {
  BatchSet batches(5, {7, 8});
  batches.remove(7);
  EXPECT_THAT(batches.ahead(), ElementsAre(8));
  batches.remove(2);
  EXPECT_EQ(batches.first(), 2U);
  EXPECT_THAT(batches.ahead(), ElementsAre(3, 4, 8));
  for (const std::uint64_t added : {2, 5, 6, 7}) batches.add(added);
  EXPECT_EQ(batches.first(), 9U);
}

TEST(BatchSet, NumbersTheBatchesThatItDoesNotHold) {
  const BatchSet batches(3, {4, 6, 7, 11});
  std::vector<std::uint64_t> missing;
  for (std::uint64_t turn = 3; turn < 10; ++turn) missing.push_back(batches.missing(turn));
  EXPECT_THAT(missing, ElementsAre(3, 5, 8, 9, 10, 12, 13));
  for (std::size_t i = 0; i + 1 < missing.size(); ++i) EXPECT_EQ(batches.after(missing[i]), missing[i + 1]);
  for (std::uint64_t sequence = 0; sequence < 14; ++sequence) {
    const bool held = sequence < 3 || sequence == 4 || sequence == 6 || sequence == 7 || sequence == 11;
    EXPECT_EQ(batches.contains(sequence), held) << sequence;
  }
  EXPECT_EQ(BatchSet(3).missing(8), 8U);
}

}  // namespace
}  // namespace headrace::test
