// zip of datasets that were batched: batch n has the rows of all datasets' batches n side by side.
#include "headrace/tests/pipeline/batches.h"
#include "headrace/tests/pipeline/property.h"

namespace headrace::test {
namespace {

const ZipOptions kSuffixes{.suffixes = {"", "_2"}, .strict = false};

// Values that are ten times as large.
Operations tenfold() {
  return user_map({.name = "tenfold",
                   .field = "value",
                   .output = {.dtype = DType::kI64, .shape = {}},
                   .function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
                     std::int64_t value = 0;
                     std::memcpy(&value, in.data(), sizeof value);
                     value *= 10;
                     std::memcpy(out.data(), &value, sizeof value);
                   }});
}

Dataset cut(std::int64_t first, std::uint64_t count, std::int64_t global, bool drop_remainder = false) {
  return counted(first, count).batch({.global_batch = global, .drop_remainder = drop_remainder});
}

void expect_pairs(const Dataset& zipped, const Batches& a, const Batches& b) {
  EXPECT_EQ(batches_of_epoch(zipped, 0, "value"), a);
  EXPECT_EQ(batches_of_epoch(zipped, 0, "value_2"), b);
}

TEST(ZippedBatches, StandSideBySide) {
  expect_pairs(zip({cut(0, 5, 2), cut(10, 5, 2)}, kSuffixes), {{0, 1}, {2, 3}, {4}}, {{10, 11}, {12, 13}, {14}});
  expect_pairs(zip({cut(0, 9, 2), cut(10, 5, 2, true)}, kSuffixes), {{0, 1}, {2, 3}}, {{10, 11}, {12, 13}});
  expect_pairs(zip({cut(0, 9, 2).skip(1), cut(10, 5, 2).take(2)}, kSuffixes), {{2, 3}, {4, 5}},
               {{10, 11}, {12, 13}});
  expect_pairs(zip({cut(0, 12, 2).shard(2, 1), cut(10, 4, 2).repeat(2)}, kSuffixes), {{2, 3}, {6, 7}, {10, 11}},
               {{10, 11}, {12, 13}, {10, 11}});
  expect_pairs(zip({counted(0, 6).skip(2).map(tenfold()).batch({.global_batch = 2}), cut(10, 9, 2)}, kSuffixes),
               {{20, 30}, {40, 50}}, {{10, 11}, {12, 13}});
  const Dataset joined = concatenate({cut(20, 2, 2), cut(30, 4, 2)});
  expect_pairs(zip({interleave({cut(0, 4, 2), cut(10, 2, 2)}), joined.map(tenfold())}, kSuffixes),
               {{0, 1}, {10, 11}, {2, 3}}, {{200, 210}, {300, 310}, {320, 330}});
}

TEST(ZippedBatches, MayBeOrderedAndUndone) {
  const Dataset zipped = zip({cut(0, 7, 2).skip(1), cut(10, 5, 2)}, kSuffixes);
  EXPECT_EQ(zipped.size(), 5U);
  EXPECT_EQ(zipped.steps_per_epoch(), 3U);
  expect_pairs(zipped.shard(2, 0), {{2, 3}, {6}}, {{10, 11}, {14}});
  expect_pairs(zipped.skip(1).unbatch().batch({.global_batch = 3}), {{4, 5, 6}}, {{12, 13, 14}});
  expect_pairs(zipped.repeat(2).map(tenfold()).skip(2).take(2), {{60}, {20, 30}}, {{14}, {10, 11}});
  const Dataset parts = concatenate({zipped, zip({cut(50, 3, 3), cut(60, 3, 3)}, kSuffixes)});
  expect_pairs(parts, {{2, 3}, {4, 5}, {6}, {50, 51, 52}}, {{10, 11}, {12, 13}, {14}, {60, 61, 62}});
  expect_pairs(parts.skip(2).unbatch().batch({.global_batch = 4}), {{6, 50, 51, 52}}, {{14, 60, 61, 62}});
}

TEST(ZippedBatches, KeepTheNumbersOfTheirRecords) {
  const Dataset numbered = counted(0, 8).enumerate({.field = "number"}).batch({.global_batch = 2}).skip(1);
  const Dataset zipped = zip({numbered, cut(10, 4, 2)}, kSuffixes);
  EXPECT_THAT(batches_of_epoch(zipped, 0, "number"), ElementsAre(ElementsAre(2, 3), ElementsAre(4, 5)));
}

TEST(ZippedBatches, AreOneStream) {
  const Dataset zipped = zip({cut(0, 23, 4).skip(1), concatenate({cut(50, 8, 4), cut(70, 11, 4)})}, kSuffixes);
  expect_one_stream(zipped.shuffle());
  expect_one_stream(mix({zipped, zipped.take(3)}));
}

TEST(ZippedBatches, AreWrittenInThePlan) {
  const PlanParts parts{.sources = {{"a", counted(0, 9).source()}, {"b", counted(100, 5).source()}}};
  const Dataset data = zip({cut(0, 9, 2).skip(1), cut(100, 5, 2, true)}, kSuffixes).shuffle().prefetch(1);
  const Dataset read = Dataset::from_json(data.to_json(parts), {.parts = parts});
  EXPECT_EQ(read.fingerprint(), data.fingerprint());
  EXPECT_EQ(batches_of_epoch(read), batches_of_epoch(data));
  EXPECT_THAT(data.explain(), HasSubstr("batch(global_batch=2, drop_remainder=false)\nshuffle(seed=0, "
                                        "reshuffle_each_epoch=true)  [on batches]\nprefetch(batches=1)"));
  const auto of = [](const Dataset& a) { return zip({a, cut(100, 4, 2)}, kSuffixes).fingerprint(); };
  EXPECT_NE(of(cut(0, 9, 2)), of(cut(0, 9, 2).skip(1)));
  EXPECT_NE(of(cut(0, 9, 2)),
            zip({counted(0, 9), counted(100, 4)}, kSuffixes).batch({.global_batch = 2}).fingerprint());
}

TEST(ZippedBatches, OfDifferentSizesAreRefused) {
  EXPECT_THAT(message_of([] {
                zip({cut(0, 8, 2), cut(0, 8, 4)}, kSuffixes);
              }),
              AllOf(HasSubstr("batch 0 has 2 examples of counted and 4 of counted"),
                    HasSubstr("give all datasets batches of one size")));
  EXPECT_THAT(message_of([] {
                zip({cut(0, 9, 2), cut(0, 5, 2)}, kSuffixes);
              }),
              AllOf(HasSubstr("batch 2 has 2 examples of counted and 1 of counted"), HasSubstr("take(2)")));
  EXPECT_THAT(
      message_of([] {
        zip({cut(0, 5, 2).repeat(2), cut(0, 5, 2).repeat(2)}, kSuffixes);
      }),
      AllOf(HasSubstr("batch 2 has 1 examples, not 2"), HasSubstr("repeat() and shuffle() on the result")));
  EXPECT_THAT(message_of([] {
                zip({cut(0, 5, 2).shuffle(), cut(0, 5, 2)}, kSuffixes);
              }),
              HasSubstr("shuffle after zip()"));
  EXPECT_THAT(message_of([] { zip({cut(0, 5, 2), counted(0, 5)}, kSuffixes); }), HasSubstr("has none"));
  EXPECT_THAT(message_of([] { zip({cut(0, 5, 2), cut(0, 5, 2)}); }), HasSubstr("a field 'value'"));
}

}  // namespace
}  // namespace headrace::test
