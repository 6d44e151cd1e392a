// How shards are counted where a process has some of the world's replicas.
#include "headrace/train/step/shards.h"
#include "headrace/tests/train/training_fixture.h"

namespace headrace::test {
namespace {

constexpr World kSecondHalf{.total = 4, .first = 2};  // of two local replicas

TEST(Shards, OneAReplicaAreTheReplicas) {
  Training training(2);
  const Shards shards(training.strategy, kSecondHalf, 0);
  EXPECT_EQ(shards.local_shards(), 2);
  EXPECT_EQ(shards.per_replica(), 1);
  EXPECT_EQ(shards.world(), kSecondHalf);
  EXPECT_EQ(&shards.stream(1), &training.strategy.stream(1));
}

TEST(Shards, VirtualOnesAreDividedAmongTheWorld) {
  Training training(2);
  const Shards shards(training.strategy, kSecondHalf, 16);
  EXPECT_EQ(shards.per_replica(), 4);
  EXPECT_EQ(shards.local_shards(), 8);
  EXPECT_EQ(shards.world(), (World{.total = 16, .first = 8}));
  EXPECT_EQ(shards.replica_of(3), 0);
  EXPECT_EQ(shards.replica_of(4), 1);
  EXPECT_EQ(shards.first_of(2), 8);
}

TEST(Shards, OfAWholeWorldAreAllLocal) {
  Training training(2);
  const Shards shards(training.strategy, 8);
  EXPECT_EQ(shards.local_shards(), 8);
  EXPECT_EQ(shards.world(), (World{.total = 8}));
}

TEST(Shards, MustBeEnoughForTheWorld) {
  Training training(2);
  EXPECT_NO_THROW(Shards(training.strategy, 2));
  EXPECT_THAT([&] { Shards(training.strategy, kSecondHalf, 2); },
              testing::ThrowsMessage<ConfigError>(HasSubstr("2 virtual shards cannot be shared equally by 4")));
}

// Rows 0 to 15, two a shard: the second process's shards are 4 to 7.
TEST(Shards, TellALoaderItsRows) {
  Training training(2);
  std::vector<float> values(16);
  std::vector<std::int64_t> rows(16);
  for (std::size_t i = 0; i < 16; ++i) rows[i] = static_cast<std::int64_t>(i);
  const Shards shards(training.strategy, kSecondHalf, 8);
  DeviceGroup devices = training.devices.repeated(shards.per_replica());
  Loader loader(labelled({1}, values, rows).batch({.global_batch = 16}), devices, {.world = shards.world()});
  EXPECT_EQ(loader.local_rows(), 2);
  std::vector<std::int64_t> first_rows;
  for (int shard = 0; shard < shards.local_shards(); ++shard) {
    const Batch batch = *loader.next(shard);
    EXPECT_EQ(batch.position().global_examples, 16);
    first_rows.push_back(batch.position().first_row);
  }
  EXPECT_THAT(first_rows, ElementsAre(8, 10, 12, 14));
}

}  // namespace
}  // namespace headrace::test
