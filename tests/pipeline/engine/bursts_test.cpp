// Loaders that make small batches many at a time: the stream is the same, and nobody waits for a burst to be full.
#include <deque>

#include "headrace/tests/pipeline/engine/parts.h"

namespace headrace::test {
namespace {

Dataset small_batches(std::int64_t global = 7, std::uint64_t count = 1000) {
  return Dataset::from(numbers(count)).shuffle({.seed = 2}).batch({.global_batch = global});
}

int burst_of(const Dataset& dataset, DeviceGroup devices, LoaderOptions options = {}) {
  options.in_bursts = true;
  return Loader(dataset, devices, options).burst();
}

TEST(Bursts, AreOfSmallBatchesThatAreOnlyCopiedWithinTheHost) {
  EXPECT_EQ(burst_of(small_batches(), cpu_replicas(1)), 16);
  EXPECT_EQ(burst_of(small_batches(), cpu_replicas(4)), 16);
  EXPECT_EQ(burst_of(small_batches(), cpu_replicas(1), {.prefetch = 9}), 5);
  EXPECT_EQ(burst_of(small_batches(8192, 600'000), cpu_replicas(1)), 16) << "64 KiB";
  EXPECT_EQ(burst_of(small_batches(8193, 600'000), cpu_replicas(1)), 1);
  EXPECT_EQ(burst_of(small_batches(), own_memory_devices(1)), 1);
  EXPECT_EQ(burst_of(small_batches(), cpu_replicas(1), {.in_order = false}), 1);
  const Dataset flipped = Dataset::from(noise_images(640, 8, 8)).map(flip()).batch({.global_batch = 8});
  EXPECT_EQ(burst_of(flipped, cpu_replicas(1)), 1);
}

TEST(Bursts, ReachAsFarAheadAsTheOptionsSay) {
  DeviceGroup devices = cpu_replicas(1);
  EXPECT_EQ(value_of(Loader(small_batches(), devices, {.in_bursts = true}), "prefetch"), "32");
  EXPECT_EQ(value_of(Loader(small_batches(), devices, {.prefetch = 4, .in_bursts = true}), "prefetch"), "4");
  EXPECT_EQ(value_of(Loader(small_batches(), devices, {}), "prefetch"), "2");
  EXPECT_EQ(value_of(Loader(small_batches(100), devices, {.in_bursts = true}), "prefetch"), "9")
      << "of 10 batches";
}

TEST(Bursts, HaveTheSameBatchesWhateverRunsThem) {
  const auto expected = cpu_digests_of(small_batches(), {.seed = 4, .epochs = 2});
  ASSERT_EQ(expected.size(), 2U * 143);
  for (const int replicas : {1, 3}) {
    for (const int threads : {1, 2}) {
      for (const int prefetch : {-1, 0, 1, 8}) {
        SCOPED_TRACE(testing::Message() << replicas << " replicas, " << threads << " threads, " << prefetch);
        const LoaderOptions options{
            .seed = 4, .epochs = 2, .threads = threads, .prefetch = prefetch, .in_bursts = true};
        EXPECT_EQ(digests_of(small_batches(), replicas, options), expected);
      }
    }
  }
}

TEST(Bursts, ContinueAtEveryStep) {
  const auto expected = cpu_digests_of(small_batches(25), {.seed = 4});
  DeviceGroup devices = cpu_replicas(2);
  for (std::size_t step = 0; step < expected.size(); ++step) {
    LoaderState state;
    {
      Loader loader(small_batches(25), devices, {.seed = 4, .in_bursts = true});
      for (std::size_t i = 0; i < step; ++i) {
        for (int replica = 0; replica < 2; ++replica) loader.next(replica);
      }
      state = loader.state();
    }
    Loader rest(small_batches(25), devices, {.seed = 4, .in_bursts = true, .start = state});
    EXPECT_THAT(digests_of(rest, devices),
                ElementsAreArray(expected.begin() + static_cast<long>(step), expected.end()));
  }
}

// The assembler waits for the oldest batch, which comes back last and ends no burst.
TEST(Bursts, GoOnWhateverComesBackLast) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(small_batches(7, 7'000), devices, {.epochs = 2, .in_bursts = true, .stall_timeout_seconds = 60});
  std::deque<Batch> held;
  std::uint64_t next = 0;
  for (bool over = false; !over;) {
    while (held.size() < 33) {
      std::optional<Batch> batch = loader.next();
      over = !batch;
      if (over) break;
      EXPECT_EQ(batch->position().sequence, next++);
      held.push_back(*std::move(batch));
    }
    while (!held.empty()) held.pop_back();
  }
  EXPECT_EQ(next, 2U * 1000);
}

TEST(Bursts, EndWhenAConsumerWaits) {
  Parts parts(cpu_replicas(1), 1000, 4, {.prefetch = 7, .in_bursts = true});
  ASSERT_EQ(parts.ring->size(), 8U);
  ASSERT_EQ(parts.ring->burst(), 4U);
  for (std::uint64_t sequence = 0; sequence < 8; ++sequence) parts.make_ready(sequence);
  for (std::uint64_t sequence = 0; sequence < 8; ++sequence) parts.ring->slot_of(sequence).mark.take();
  parts.ring->release(parts.ring->slot_of(0), 0, nullptr);
  parts.write(8);
  std::atomic<bool> begun{false};
  std::thread assembler([&] {
    EXPECT_EQ(parts.ring->next_turn(9, 0), Ring::Turn::kBegin);
    begun = true;
  });
  parts.clock.await_waiting(1);
  parts.ring->release(parts.ring->slot_of(1), 0, nullptr);
  parts.clock.await_waiting(1);
  EXPECT_FALSE(begun.load()) << "batch 1 ends no burst";
  std::thread consumer([&] { EXPECT_TRUE(parts.ring->wait_until_out(8, 0)); });
  assembler.join();
  parts.ring->complete(parts.ring->slot_of(8));
  consumer.join();
}

}  // namespace
}  // namespace headrace::test
