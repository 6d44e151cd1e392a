// Batches that are combined and zipped.
#include "headrace/pipeline/held_out.h"
#include "headrace/tests/pipeline/batches.h"
#include "headrace/tests/pipeline/property.h"

namespace headrace::test {
namespace {

// concatenate, interleave and mix of datasets that were batched: each batch of theirs is one of the result's.

Dataset cut_in(std::int64_t first, std::uint64_t count, std::int64_t global, bool drop_remainder = false) {
  return counted(first, count).batch({.global_batch = global, .drop_remainder = drop_remainder});
}

TEST(CombinedBatches, OfConcatenateAreThoseOfOneAfterTheOther) {
  const Dataset data = concatenate({cut_in(0, 5, 2), cut_in(10, 0, 3), cut_in(20, 7, 3, true)});
  EXPECT_THAT(batches_of_epoch(data), ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4),
                                                  ElementsAre(20, 21, 22), ElementsAre(23, 24, 25)));
  EXPECT_EQ(data.steps_per_epoch(), 5U);
  EXPECT_EQ(data.size(), 11U);
  EXPECT_EQ(data.global_batch(), 3);
}

TEST(CombinedBatches, OfInterleaveTakeTurns) {
  const std::vector<Dataset> parts{cut_in(0, 7, 2), cut_in(10, 2, 2), cut_in(20, 5, 4)};
  EXPECT_THAT(batches_of_epoch(interleave(parts)),
              ElementsAre(ElementsAre(0, 1), ElementsAre(10, 11), ElementsAre(20, 21, 22, 23), ElementsAre(2, 3),
                          ElementsAre(24), ElementsAre(4, 5), ElementsAre(6)));
  EXPECT_THAT(batches_of_epoch(interleave(parts, {.block = 3}).take(4)),
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3), ElementsAre(4, 5), ElementsAre(10, 11)));
}

TEST(CombinedBatches, OfMixAreDrawnInExactProportions) {
  const Dataset data = mix({cut_in(0, 60, 2), cut_in(1000, 60, 3)}, {.weights = {1, 2}});
  const Batches batches = batches_of_epoch(data);
  EXPECT_EQ(batches.size(), 30U);
  std::int64_t next_of_a = 0, next_of_b = 1000;
  for (const auto& batch : batches) {
    std::int64_t& next = batch.front() < 1000 ? next_of_a : next_of_b;
    EXPECT_EQ(batch.size(), batch.front() < 1000 ? 2U : 3U);
    for (const std::int64_t value : batch) EXPECT_EQ(value, next++);
  }
  EXPECT_EQ(next_of_a, 20);
  EXPECT_EQ(next_of_b, 1060);
  EXPECT_NE(batches, batches_of_epoch(data, 1)) << "another merge each epoch";
}

TEST(CombinedBatches, OfAPartThatStartsAnewAreShuffledAnew) {
  const Dataset small = counted(1000, 4).shuffle().batch({.global_batch = 2});
  const Dataset data = mix({cut_in(0, 40, 2), small}, {.weights = {1, 1}, .end = MixEnd::kAllSeen});
  std::vector<std::int64_t> values;
  for (const auto& batch : batches_of_epoch(data)) {
    if (batch.front() >= 1000) values.insert(values.end(), batch.begin(), batch.end());
  }
  ASSERT_EQ(values.size(), 40U);
  bool differ = false;
  for (std::size_t pass = 0; pass < 10; ++pass) {
    std::vector<std::int64_t> one(values.begin() + static_cast<std::ptrdiff_t>(4 * pass),
                                  values.begin() + static_cast<std::ptrdiff_t>(4 * pass + 4));
    differ = differ || !std::equal(one.begin(), one.end(), values.begin());
    std::ranges::sort(one);
    EXPECT_THAT(one, ElementsAre(1000, 1001, 1002, 1003));
  }
  EXPECT_TRUE(differ);
}

TEST(CombinedBatches, MayBeOfFilteredMappedAndCachedRecords) {
  const RecordFilter odd{.name = "odd",
                         .keeps = [](const ExampleView& record) { return record.integer("value") % 2 == 1; }};
  const Dataset a = counted(0, 10).filter(odd).batch({.global_batch = 3});
  const Dataset b = counted(100, 3).cache(memory()).batch({.global_batch = 2}).cache(memory());
  for (int run = 0; run < 2; ++run) {
    EXPECT_THAT(batches_of_epoch(concatenate({a, b}).cache(memory())),
                ElementsAre(ElementsAre(1, 3, 5), ElementsAre(7, 9), ElementsAre(100, 101), ElementsAre(102)));
  }
}

// What stages do to batches, each kind at random.
struct BatchStages {
  std::function<Dataset(const Dataset&)> apply = [](const Dataset& data) { return data; };
  bool shuffles = false, chooses_after = false;
};

BatchStages random_stages(Philox& random, std::uint32_t count) {
  BatchStages all;
  for (; count > 0; --count) {
    const std::uint64_t number = 1 + random.below(3);
    const std::uint32_t kind = random.below(6);
    const auto stage = [=](const Dataset& data) {
      switch (kind) {
        case 0: return data.take(2 + 2 * number);
        case 1: return data.skip(number - 1);
        case 2: return data.shard(2, number % 2);
        case 3: return data.repeat(static_cast<std::int64_t>(number));
        case 4: return data.shuffle({.seed = number});
        default: return data.without_shard(3, number - 1);
      }
    };
    all.chooses_after = all.chooses_after || (all.shuffles && kind != 3 && kind != 4);
    all.shuffles = all.shuffles || kind == 4;
    all.apply = [before = all.apply, stage](const Dataset& data) { return stage(before(data)); };
  }
  return all;
}

// Combines parts of batches, and parts of as many records as they have batches in the same way.
class RandomCombination {
 public:
  explicit RandomCombination(std::uint64_t number) : random_({.seed = 31, .record = number}) {
    std::vector<Dataset> parts, numbers;
    for (std::uint32_t left = 1 + random_.below(3); left > 0; --left) add_part(parts, numbers);
    const std::uint32_t how = random_.below(4);
    const std::uint64_t block = 1 + random_.below(3);
    MixOptions options{.seed = block, .end = random_.below(2) == 0 ? MixEnd::kFirstEnds : MixEnd::kAllSeen};
    for (std::size_t i = 0; how == 3 && i < parts.size(); ++i) options.weights.push_back(1 + random_.below(3));
    const auto combine = [&](const std::vector<Dataset>& those) {
      if (how == 0) return concatenate(those);
      if (how == 1) return interleave(those, {.block = block});
      return mix(those, options);
    };
    const BatchStages after = random_stages(random_, random_.below(3));
    batches = after.apply(combine(parts));
    orders_ = after.apply(combine(numbers));
  }

  Dataset batches = counted(0, 0);

  // The batches of both epochs, by the order of their numbers. `seed` is that of the plan's index.
  Batches expected(std::uint64_t seed) const {
    constexpr std::uint64_t kKeyOfBatches = 0xBA7C;
    Batches all;
    for (const auto& one :
         batches_of(orders_.batch({.global_batch = 1}), 2, {}, {}, mix_seed(seed, kKeyOfBatches))) {
      all.push_back(known_[static_cast<std::size_t>(one.front())]);
    }
    return all;
  }

 private:
  void add_part(std::vector<Dataset>& parts, std::vector<Dataset>& numbers) {
    const Dataset records = counted(1000 * static_cast<std::int64_t>(parts.size()), 1 + random_.below(20));
    const Dataset cut =
        records.skip(random_.below(3))
            .repeat(1 + random_.below(2))
            .batch({.global_batch = 1 + random_.below(5), .drop_remainder = random_.below(3) == 0});
    const Batches own = batches_of_epoch(cut);
    const BatchStages stages = random_stages(random_, random_.below(3));
    parts.push_back(stages.apply(cut));
    numbers.push_back(stages.apply(counted(static_cast<std::int64_t>(known_.size()), own.size())));
    known_.insert(known_.end(), own.begin(), own.end());
  }

  Philox random_;
  Batches known_;
  Dataset orders_ = counted(0, 0);
};

std::vector<std::int64_t> all_values(const Batches& batches) {
  std::vector<std::int64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

TEST(CombinedBatches, ComeInTheOrderOfCombinedRecords) {
  const std::uint64_t seed_after_combination = mix_seed(mix_seed(4, 0), 1);  // where unbatch() stands
  int unbatched = 0, refused = 0;
  for (std::uint64_t number = 0; number < 50; ++number) {
    const RandomCombination made(number);
    SCOPED_TRACE(std::to_string(number) + ": " + made.batches.explain());
    const Batches expected = made.expected(4);
    ASSERT_EQ(made.batches.steps_per_epoch() * 2, expected.size());
    ASSERT_EQ(batches_of(made.batches, 2, {.total = 1}), expected);
    ASSERT_EQ(batches_of(made.batches, 2, {.total = 3}), expected) << "three replicas";
    ASSERT_EQ(batches_of(made.batches, 2, {.total = 4, .local = 2}), expected) << "two parts of a world of 4";
    const Dataset records = made.batches.unbatch();
    try {
      ASSERT_EQ(records.size(), made.batches.size());
    } catch (const ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("changes with the shuffle"));
      ++refused;
      continue;
    }
    ++unbatched;
    EXPECT_EQ(all_values(batches_of(records.batch({.global_batch = 4}), 2, {})),
              all_values(made.expected(seed_after_combination)));
  }
  EXPECT_GT(unbatched, 30);
  EXPECT_LT(refused, 20);
}

TEST(CombinedBatches, AreOneStream) {
  const Dataset a = counted(0, 23).shuffle().batch({.global_batch = 4}).shuffle();
  const Dataset b = counted(100, 17).batch({.global_batch = 3, .drop_remainder = true}).repeat(2);
  expect_one_stream(concatenate({a, b}).shuffle());
  expect_one_stream(interleave({a, interleave({b, a}, {.block = 2})}, {.block = 1}).skip(1));
  expect_one_stream(mix({a, b}, {.weights = {1, 2}, .end = MixEnd::kAllSeen}));
  expect_one_stream(mix({a, b}).unbatch().batch({.global_batch = 5}).take(7));
  const auto images = [](std::uint64_t count, std::int64_t global) {
    return Dataset::from(noise_images(count, 6, 6))
        .map(cast(DType::kF32) | flip() | one_hot(10))
        .shuffle()
        .batch({.global_batch = global});
  };
  expect_one_stream(interleave({images(11, 4), images(7, 3)}).map(mixup()));
}

TEST(CombinedBatches, AreWrittenInThePlan) {
  const Dataset a = counted(0, 9).shuffle({.seed = 3}).batch({.global_batch = 4}).skip(1);
  const Dataset b = counted(100, 5).batch({.global_batch = 2});
  const PlanParts parts{.sources = {{"a", counted(0, 9).source()}, {"b", counted(100, 5).source()}}};
  for (const Dataset& data : {concatenate({a, b}), interleave({concatenate({a, b}), b}, {.block = 2}).shuffle(),
                              mix({a, b}, {.weights = {1, 1}}).unbatch().batch({.global_batch = 3})}) {
    const Dataset read = Dataset::from_json(data.to_json(parts), {.parts = parts});
    EXPECT_EQ(read.fingerprint(), data.fingerprint());
    EXPECT_EQ(batches_of_epoch(read), batches_of_epoch(data));
  }
  const PlanOptions of_three{.parts = parts, .global_batch = 3};
  const Dataset data = concatenate({b, b});
  EXPECT_THAT(batches_of_epoch(Dataset::from_json(data.to_json(parts), of_three)),
              ElementsAre(ElementsAre(100, 101, 102), ElementsAre(103, 104), ElementsAre(100, 101, 102),
                          ElementsAre(103, 104)));
  EXPECT_THAT(batches_of_epoch(
                  Dataset::from_json(data.skip(1).unbatch().batch({.global_batch = 9}).to_json(parts), of_three)),
              ElementsAre(ElementsAre(102, 103, 104), ElementsAre(100, 101, 102), ElementsAre(103, 104)));
  EXPECT_THAT(
      interleave({a, b}, {.block = 2}).take(3).explain(),
      AllOf(HasSubstr(
                "whole batches, interleave(block=2): [9 records | shuffle(seed=3, reshuffle_each_epoch=true) | "
                "batch(global_batch=4, drop_remainder=false) | skip(count=1)] [5 records | "
                "batch(global_batch=2, drop_remainder=false)]  [on indices]"),
            HasSubstr("batches of the datasets, of up to 4 examples\ntake(count=3)  [on batches]")));
}

TEST(CombinedBatches, HaveTheirOwnFingerprints) {
  const Dataset a = counted(0, 9), b = counted(100, 5);
  const auto of = [](const Dataset& data) { return data.fingerprint(); };
  const std::vector<Dataset> all{concatenate({a, b}).batch({.global_batch = 2}),
                                 concatenate({a.batch({.global_batch = 2}), b.batch({.global_batch = 2})}),
                                 concatenate({a.batch({.global_batch = 2}), b.batch({.global_batch = 1})}),
                                 concatenate({a.batch({.global_batch = 2}).skip(1), b.batch({.global_batch = 2})}),
                                 interleave({a.batch({.global_batch = 2}), b.batch({.global_batch = 2})}),
                                 mix({a.batch({.global_batch = 2}), b.batch({.global_batch = 2})})};
  std::vector<std::uint64_t> different;
  for (const Dataset& data : all) different.push_back(of(data));
  std::ranges::sort(different);
  EXPECT_TRUE(std::ranges::adjacent_find(different) == different.end());
}

TEST(CombinedBatches, EvaluateAsThePartsDo) {
  const Dataset a = counted(0, 5).batch({.global_batch = 2, .drop_remainder = true});
  const Dataset data = concatenate({a, a});
  EXPECT_THAT(data.evaluation_json(),
              AllOf(HasSubstr("\"global_batch\": 2"), HasSubstr("\"drop_remainder\": false")));
  const Dataset uneven = concatenate({a, counted(0, 5).batch({.global_batch = 3})});
  EXPECT_THAT(message_of([&] { uneven.evaluation_json(); }), HasSubstr("batched or unbatched in different ways"));
}

TEST(CombinedBatches, RefuseWhatHasNoMeaning) {
  const Dataset a = counted(0, 5), b = a.batch({.global_batch = 2});
  const auto refusal = [](const std::function<Dataset()>& make) { return message_of([&] { make().explain(); }); };
  EXPECT_THAT(refusal([&] {
                return concatenate({b, a});
              }),
              AllOf(HasSubstr("has a batch() and that of counted has none"), HasSubstr("unbatch()")));
  EXPECT_THAT(refusal([&] {
                return concatenate({b, b}).batch({.global_batch = 2});
              }),
              HasSubstr("unbatch() before"));
  EXPECT_THAT(refusal([&] { return concatenate({b, b}).filter(with_labels({1})); }), HasSubstr("before batch()"));
  EXPECT_THAT(refusal([&] {
                return concatenate({b, b}).enumerate();
              }),
              HasSubstr("put enumerate() before batch()"));
  EXPECT_THAT(refusal([&] {
                return concatenate({b, b}).window({.size = 2});
              }),
              HasSubstr("put window() before batch()"));
  EXPECT_THAT(refusal([&] {
                return hold_out_last(concatenate({b, b}), 0.5).train;
              }),
              HasSubstr("split of batches that are combined"));
  EXPECT_THAT(refusal([&] { return mix({b, b}).take(2).unbatch(); }), IsEmpty()) << "only if it is counted";
  EXPECT_THAT(message_of([&] { mix({b, b}).take(2).unbatch().size(); }), HasSubstr("unbatch() each dataset"));
  const Dataset images = Dataset::from(noise_images(5, 4, 4)).map(cast(DType::kF32) | one_hot(10));
  const Dataset mixed = images.batch({.global_batch = 2}).map(mixup());
  EXPECT_THAT(refusal([&] {
                return interleave({mixed, mixed});
              }),
              AllOf(HasSubstr("mixes the examples of a batch"), HasSubstr("on the result of interleave()")));
}

TEST(CombinedBatches, RefuseBatchesOfDifferentShapes) {
  const Dataset lists = counted(0, 6).window({.size = 2, .shift = 1, .drop_remainder = false});
  const Dataset ragged = lists.ragged_batch({.global_batch = 2});
  const Dataset buckets = lists.bucket_by_length({.field = "value", .boundaries = {1}, .batch_sizes = {2}});
  EXPECT_THAT(
      message_of([&] {
        mix({ragged, ragged});
      }),
      AllOf(HasSubstr("whose samples differ in length"), HasSubstr("call ragged_batch() on the result of mix()")));
  EXPECT_THAT(
      message_of([&] {
        zip({buckets, buckets});
      }),
      AllOf(HasSubstr("whose batches differ in shape"), HasSubstr("call bucket_by_length() on the result")));
  const Dataset padded = lists.padded_batch({.global_batch = 4});
  EXPECT_EQ(batches_of_epoch(concatenate({padded, padded})).size(), 4U);
}

// zip of datasets that were batched: batch n has the rows of all datasets' batches n side by side.

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
