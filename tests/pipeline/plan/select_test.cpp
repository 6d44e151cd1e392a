#include "headrace/tests/pipeline/property.h"

namespace headrace::test {
namespace {

constexpr std::int64_t kDraws = 1 << 20;

// value -> value * kDraws + a random number below kDraws.
Operations draw() {
  return user_map(
      {.name = "draw",
       .field = "value",
       .output = {.dtype = DType::kI64, .shape = {}},
       .function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox& random) {
         std::int64_t value = 0;
         std::memcpy(&value, in.data(), sizeof value);
         value = value * kDraws + random.below(kDraws);
         std::memcpy(out.data(), &value, sizeof value);
       }});
}

std::vector<std::int64_t> epoch_of(const Dataset& dataset) { return values_of(dataset).front(); }

TEST(Select, ChoosesRecordsInTheOrderGiven) {
  const Dataset ten = Dataset::from(numbers(10));
  EXPECT_THAT(epoch_of(ten.select({7, 0, 7, 9}).batch({.global_batch = 3})), ElementsAre(7, 0, 7, 9));
  EXPECT_THAT(epoch_of(ten.skip(2).select({0, 7}).batch({.global_batch = 3})), ElementsAre(2, 9));
  EXPECT_THAT(epoch_of(ten.select({5, 6, 8}).select({2, 0}).batch({.global_batch = 3})), ElementsAre(8, 5));
  EXPECT_EQ(ten.select({}).size(), 0U);
  EXPECT_EQ(ten.select({3, 3, 3}).repeat(2).size(), 6U);
}

TEST(Select, AfterAShuffleChoosesPositions) {
  const Dataset shuffled = Dataset::from(numbers(50)).shuffle();
  const auto all = values_of(shuffled.batch({.global_batch = 50}), 2);
  const auto chosen = values_of(shuffled.select({4, 49, 4}).batch({.global_batch = 3}), 2);
  for (const std::size_t epoch : {0U, 1U})
    EXPECT_THAT(chosen[epoch], ElementsAre(all[epoch][4], all[epoch][49], all[epoch][4]));
}

TEST(Select, AfterBatchChoosesWholeBatches) {
  const Dataset batches = Dataset::from(numbers(10)).batch({.global_batch = 4});
  EXPECT_THAT(epoch_of(batches.select({2, 0, 2})), ElementsAre(8, 9, 0, 1, 2, 3, 8, 9));
  EXPECT_EQ(batches.select({2, 0, 2}).steps_per_epoch(), 3U);
  EXPECT_EQ(batches.select({2, 0, 2}).size(), 8U);
  EXPECT_THAT(epoch_of(batches.select({2, 0}).unbatch().batch({.global_batch = 5})),
              ElementsAre(8, 9, 0, 1, 2, 3));
  EXPECT_THAT(message_of([&] { batches.select({3}).steps_per_epoch(); }), HasSubstr("there are 3"));
}

TEST(Select, IsOneStream) {
  const Dataset data = Dataset::from(numbers(40)).map(draw());
  std::vector<std::uint64_t> list;
  for (std::uint64_t i = 0; i < 37; ++i) list.push_back(i * i % 40);
  expect_one_stream(data.select(list).batch({.global_batch = 5}));
  expect_one_stream(Dataset::from(numbers(40))
                        .cache(memory())
                        .map(draw())
                        .select(list)
                        .shuffle()
                        .repeat(2)
                        .batch({.global_batch = 7}));
  expect_one_stream(data.shuffle().select(list).skip(3).batch({.global_batch = 5}));
  expect_one_stream(data.shuffle().batch({.global_batch = 6}).select({6, 1, 1, 0, 5, 6}));
  expect_one_stream(
      data.batch({.global_batch = 6}).select({6, 1, 1, 0}).unbatch().shuffle().batch({.global_batch = 4}));
  expect_one_stream(concatenate({data.select(list), data.select({3, 3, 9})}).batch({.global_batch = 8}));
}

TEST(Select, RandomOperationsTreatARepeatedRecordDifferently) {
  const Dataset data = Dataset::from(numbers(10)).map(draw());
  const auto epochs = values_of(data.select({5, 2, 5, 5}).batch({.global_batch = 4}), 3);
  std::set<std::int64_t> different;
  for (const auto& epoch : epochs) different.insert(epoch.begin(), epoch.end());
  EXPECT_EQ(different.size(), 12U);
  EXPECT_EQ(values_of(data.select({5, 2}).batch({.global_batch = 2})).front()[0],
            values_of(data.batch({.global_batch = 10})).front()[5]);
}

TEST(Select, BadNumbersAreNamed) {
  const Dataset ten = Dataset::from(numbers(10));
  EXPECT_THAT(message_of([&] {
                ten.select({3, 9, 10, 11}).size();
              }),
              AllOf(HasSubstr("number 10, at place 2 of the list"), HasSubstr("there are 10"),
                    HasSubstr("numbers go from 0 to 9")));
  EXPECT_THAT(message_of([&] { ten.take(0).select({0}).size(); }), HasSubstr("there are 0"));
  DeviceGroup devices = test_devices(1);
  EXPECT_THAT(message_of([&] { Loader(ten.select({~std::uint64_t{0}}).batch({.global_batch = 1}), devices, {}); }),
              HasSubstr("number 18446744073709551615"));
}

TEST(Select, AStreamHasNoRecordNumbers) {
  const Dataset stream = Dataset::from(
      record_stream({.name = "stream", .fields = numbers(1)->info().fields, .open = [](std::uint64_t) {
                       return [](RecordWriter&) { return false; };
                     }}));
  EXPECT_THAT(message_of([&] { stream.select({1}).explain(); }),
              AllOf(HasSubstr("select(1)"), HasSubstr("a stream has no record numbers")));
}

TEST(Select, IsDescribedByItsListOrTheHashOfALongOne) {
  const Dataset many = Dataset::from(numbers(100));
  EXPECT_THAT(many.select({7, 0, 7}).explain(), HasSubstr("select(7, 0, 7)  [on indices]\n"));
  EXPECT_THAT(many.batch({.global_batch = 2}).select({1}).explain(), HasSubstr("select(1)  [on batches]\n"));
  std::vector<std::uint64_t> list{4, 17, 9, 1, 2, 3, 5, 6, 7};
  EXPECT_THAT(many.select(list).explain(), HasSubstr("select(4, 17, 9, ...; 9 numbers, list "));
  const std::uint64_t fingerprint = many.select(list).fingerprint();
  EXPECT_EQ(many.select(list).fingerprint(), fingerprint);
  list.back() = 8;
  EXPECT_NE(many.select(list).fingerprint(), fingerprint);
}

TEST(Select, NumbersOfRepeatedRecordsAreNotCached) {
  const Dataset ten = Dataset::from(numbers(10));
  EXPECT_EQ(ten.select({4, 5}).enumerate().cache(memory()).size(), 2U);
  EXPECT_THAT(message_of([&] {
                ten.select({4, 4}).enumerate().cache(memory()).size();
              }),
              HasSubstr("repeated records"));
}

}  // namespace
}  // namespace headrace::test
