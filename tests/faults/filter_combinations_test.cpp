// Records that a filter could not judge, where it is one part of a combination or what it judged comes more than
// once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "headrace/pipeline/dataset.h"
#include "headrace/tests/faults/filter_fixture.h"

namespace headrace {
namespace {

using namespace test;
using ::testing::ElementsAre;

TEST(FilterFaults, ARecordAtSeveralPlacesIsBadAtAllOfThem) {
  const GivenStream stream =
      skipping(Dataset::from(rotten_at_first({6})).take(10).repeat(2).take(20).filter(two_of_three()));
  EXPECT_THAT(stream.good, ElementsAre(0, 2, 3, 5, 8, 9, 0, 2, 3, 5, 8, 9));
  EXPECT_THAT(stream.bad_records(), ElementsAre(6, 6)) << "at the second it was read";
}

TEST(FilterFaults, StandInCombinationsByTheirNumberThere) {
  const auto whole = [] { return Dataset::from(std::make_shared<FakeSource>(10)); };
  const auto part = [] { return Dataset::from(rotten_at_first()).filter(two_of_three()); };
  const auto sorted = [](Records records) {
    std::ranges::sort(records);
    return records;
  };
  for (const int threads : {1, 4}) {
    EXPECT_THAT(skipping(concatenate({whole(), part()}), threads).bad_records(), ElementsAre(17, 30, 43));
    EXPECT_THAT(skipping(interleave({whole(), part()}), threads).bad_records(), ElementsAre(17, 30, 43));
    EXPECT_THAT(sorted(skipping(mix({whole(), part()}), threads).bad_records()), ElementsAre(17, 30, 43));
    EXPECT_THAT(skipping(concatenate({whole(), concatenate({part(), part()})}), threads).bad_records(),
                ElementsAre(17, 30, 43, 77, 90, 103));
    EXPECT_THAT(skipping(concatenate({part(), whole()}).filter(two_of_three(1000)), threads).bad_records(),
                ElementsAre(7, 20, 33))
        << "a filter behind the combination";
  }
  const GivenStream stream = skipping(concatenate({whole(), part()}));
  ASSERT_FALSE(stream.bad.empty());
  EXPECT_EQ(stream.bad.front().name, "item/7") << "as the part calls it";
  EXPECT_EQ(stream.bad.front().cause, "rotten");
}

TEST(FilterFaults, AllRowsOfABatchThatCannotBeJudgedAreBad) {
  std::vector<std::byte> bytes(12 * sizeof(std::int64_t));
  bytes[6 * sizeof(std::int64_t)] = std::byte{1};
  const auto source = in_memory(
      "threes", 4,
      {Array{.field = {.name = "value", .dtype = DType::kI64, .shape = {3}}, .bytes = std::move(bytes)}});
  const RecordFilter third{.name = "third", .keeps = [](const ExampleView& record) {
                             if (record.bytes("value")[0] == std::byte{1}) throw std::runtime_error("no luck");
                             return true;
                           }};
  EXPECT_THAT(skipping(Dataset::from(source).filter(third).unbatch()).bad_records(), ElementsAre(6, 7, 8));
}

TEST(FilterFaults, OneHalfOfAZippedRecordIsEnough) {
  const auto zipped = [](const SourcePtr& source) {
    return zip({Dataset::from(source).filter(two_of_three()), Dataset::from(test::numbers(50))},
               {.suffixes = {"", "_2"}, .strict = false});
  };
  for (const int threads : {1, 4}) {
    const GivenStream stream = skipping(zipped(rotten_at_first()), threads);
    // Its records are the positions of what is kept: 0 2 3 5 6 7 ...
    EXPECT_THAT(stream.bad_records(), ElementsAre(5, 14, 23));
    EXPECT_EQ(stream.good.size(), 38U);
    ASSERT_EQ(stream.bad.size(), 3U);
    EXPECT_EQ(stream.bad[0].name, "item/7 + numbers[5]");
    EXPECT_EQ(stream.bad[0].cause, "rotten");
    EXPECT_EQ(stream.bad[1].operation, "filter(two of three, version 1)");
    EXPECT_EQ(stream.bad[1].cause, "no luck");
  }
  EXPECT_NE(zipped(rotten_at_first({7})).fingerprint(), zipped(rotten_at_first({10})).fingerprint())
      << "its records are others, though as many";
  EXPECT_EQ(zipped(rotten_at_first()).fingerprint(), zipped(rotten_at_first()).fingerprint());
  const Dataset behind = zipped(rotten_at_first()).filter(two_of_three(1000, "value_2"));
  EXPECT_THAT(skipping(behind).bad_records(), ElementsAre(5, 14, 23)) << "a filter behind the zip";
}

}  // namespace
}  // namespace headrace
