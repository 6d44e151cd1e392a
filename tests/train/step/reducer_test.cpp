#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

// One replica of a world, whose slices it notes.
class NotingCollective final : public Collective {
 public:
  NotingCollective(int world, const float* base) : world_(world), base_(base) {}

  int local_replicas() const noexcept override { return 1; }
  int world_replicas() const noexcept override { return world_; }
  void all_reduce_sum(int replica, const TensorView& tensor, Stream&) override {
    ASSERT_EQ(replica, 0);
    const std::int64_t begin = tensor.as<float>() - base_;
    slices.emplace_back(begin, begin + tensor.elements());
  }
  void broadcast(int, int, const TensorView&, Stream&) override {}
  void abort(const std::string&) noexcept override {}

  std::vector<std::pair<std::int64_t, std::int64_t>> slices;

 private:
  int world_;
  const float* base_;
};

const std::vector<ArenaSlice> kWhole{{0, 1000}};

using Slices = std::vector<std::pair<std::int64_t, std::int64_t>>;

class ReducerTest : public testing::Test {
 protected:
  ReplicaStreams streams() const { return {.compute = training_.strategy.stream(0)}; }

  Training training_{1};
  std::vector<float> memory_ = std::vector<float>(1000);
  TensorView arena_{memory_.data(), Shape{1000}, DType::kF32};
};

TEST_F(ReducerTest, SendsFullBucketsAsTheyFillAndTheRestAtTheEnd) {
  NotingCollective collective(2, memory_.data());
  Reducer reducer(collective, 1000, {.bucket_bytes = 400});
  for (int round = 0; round < 2; ++round) {
    collective.slices.clear();
    std::vector<std::int64_t> summed;
    for (const std::int64_t filled : {50, 120, 130, 700, 990}) {
      summed.push_back(reducer.filled(0, arena_, filled, kWhole, streams()));
    }
    EXPECT_EQ(summed, (std::vector<std::int64_t>{0, 120, 120, 700, 990}));
    EXPECT_EQ(reducer.finish(0, arena_, kWhole, streams()), 1000);
    reducer.join(0, streams());
    EXPECT_EQ(collective.slices, (Slices{{0, 120}, {120, 700}, {700, 990}, {990, 1000}}));
  }
}

TEST_F(ReducerTest, BesideTheComputeStreamNothingCountsAsSummedBeforeItIsWaitedFor) {
  const auto beside = training_.devices[0].create_stream();
  const ReplicaStreams apart{.compute = training_.strategy.stream(0), .communication = *beside};
  NotingCollective collective(2, memory_.data());
  Reducer reducer(collective, 1000, {.bucket_bytes_apart = 400, .bucket_bytes_workers = 400});
  for (int round = 0; round < 2; ++round) {
    collective.slices.clear();
    for (const std::int64_t filled : {50, 120, 130, 700, 990}) {
      EXPECT_EQ(reducer.filled(0, arena_, filled, kWhole, apart), 0);
    }
    EXPECT_EQ(collective.slices, (Slices{{0, 120}, {120, 700}, {700, 990}}));
    EXPECT_EQ(reducer.finish(0, arena_, kWhole, apart), 990);
    reducer.join(0, apart);
    EXPECT_EQ(collective.slices.back(), (std::pair<std::int64_t, std::int64_t>{990, 1000}));
  }
  training_.strategy.synchronize();
  beside->synchronize();
}

// Buckets are as large as before; no element but the wanted ones is sent, each once.
TEST_F(ReducerTest, SendsNothingBetweenTheSlicesThatAreWanted) {
  NotingCollective collective(2, memory_.data());
  Reducer reducer(collective, 1000, {.bucket_bytes = 400});
  const std::vector<ArenaSlice> wanted{{0, 60}, {100, 130}, {500, 620}, {980, 990}};
  for (int round = 0; round < 2; ++round) {
    collective.slices.clear();
    std::vector<std::int64_t> summed;
    for (const std::int64_t filled : {50, 120, 130, 510, 700, 985}) {
      summed.push_back(reducer.filled(0, arena_, filled, wanted, streams()));
    }
    EXPECT_EQ(summed, (std::vector<std::int64_t>{0, 0, 0, 510, 700, 700}));
    EXPECT_EQ(reducer.finish(0, arena_, wanted, streams()), 1000);
    reducer.join(0, streams());
    EXPECT_EQ(collective.slices, (Slices{{0, 60}, {100, 130}, {500, 510}, {510, 620}, {980, 990}}));
  }
}

// Its own slices are all that this process sends, however many replicas the world has.
TEST_F(ReducerTest, OneReplicaOfALargerWorldSendsItsOwn) {
  NotingCollective collective(64, memory_.data());
  Reducer reducer(collective, 1000, {.bucket_bytes = 4000});
  EXPECT_EQ(reducer.filled(0, arena_, 990, kWhole, streams()), 0) << "nothing counts as summed before it is sent";
  EXPECT_EQ(reducer.finish(0, arena_, kWhole, streams()), 1000);
  reducer.join(0, streams());
  EXPECT_EQ(collective.slices, (Slices{{0, 1000}}));
}

// Buckets then are what is updated beside the backward pass.
TEST_F(ReducerTest, AWorldOfOneFillsBucketsWhereUpdatesAreApart) {
  const auto beside = training_.devices[0].create_stream();
  const ReplicaStreams apart{.compute = training_.strategy.stream(0), .updates = *beside};
  NotingCollective collective(1, memory_.data());
  Reducer reducer(collective, 1000, {.bucket_bytes = 4, .bucket_bytes_apart = 400});
  for (int round = 0; round < 2; ++round) {
    std::vector<std::int64_t> summed;
    for (const std::int64_t filled : {50, 120, 130, 700, 990}) {
      summed.push_back(reducer.filled(0, arena_, filled, kWhole, apart));
    }
    EXPECT_EQ(summed, (std::vector<std::int64_t>{0, 120, 120, 700, 990}));
    EXPECT_EQ(reducer.finish(0, arena_, kWhole, apart), 1000);
    reducer.join(0, apart);
    EXPECT_TRUE(collective.slices.empty());
  }
}

TEST_F(ReducerTest, AWorldOfOneSendsNothing) {
  NotingCollective collective(1, memory_.data());
  Reducer reducer(collective, 1000, {.bucket_bytes = 400});
  EXPECT_EQ(reducer.filled(0, arena_, 20, kWhole, streams()), 20);
  EXPECT_EQ(reducer.filled(0, arena_, 800, kWhole, streams()), 800);
  EXPECT_EQ(reducer.finish(0, arena_, kWhole, streams()), 1000);
  reducer.join(0, streams());
  EXPECT_TRUE(collective.slices.empty());
}

}  // namespace
}  // namespace headrace::test
