#include "headrace/pipeline/loader.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/gate.h"

namespace headrace::test {
namespace {

Dataset augmented(const SourcePtr& source, std::int64_t global) {
  return Dataset::from(source)
      .shuffle({.seed = 7})
      .map(pad_crop(8, 2) | flip() | normalize({0.5F, 0.4F, 0.3F}, {0.2F, 0.3F, 0.4F}))
      .batch({.global_batch = global})
      .prefetch(2);
}

std::vector<std::int64_t> device_values(Device& device, const Batch& batch) {
  return download<std::int64_t>(device, batch, "value");
}

TEST(Loader, GivesTheSameBitsForAnyThreadsReplicasAndPrefetch) {
  const Dataset dataset = augmented(noise_images(211, 8, 8), 48);
  const auto expected = cpu_digests_of(dataset, {.seed = 5, .epochs = 2, .threads = 1, .prefetch = 0});
  ASSERT_EQ(expected.size(), 10U);
  for (int threads : {1, 2, 4}) {
    for (int replicas : {1, 2, 4, 8}) {
      for (int prefetch : {0, 1, 4}) {
        EXPECT_EQ(
            digests_of(dataset, replicas, {.seed = 5, .epochs = 2, .threads = threads, .prefetch = prefetch}),
            expected)
            << threads << " threads, " << replicas << " replicas, prefetch " << prefetch;
      }
    }
  }
  EXPECT_NE(digests_of(dataset, 1, {.seed = 6, .epochs = 2, .threads = 1}), expected);
}

TEST(Loader, GivesTheSameBitsThroughPinnedMemoryAndCopies) {
  const Dataset dataset = augmented(noise_images(211, 8, 8), 48);
  const auto expected = cpu_digests_of(dataset, {.seed = 5, .epochs = 2, .threads = 1});
  for (int replicas : {1, 3}) {
    for (int prefetch : {0, 1, 4}) {
      DeviceGroup devices = own_memory_devices(replicas);
      {
        Loader loader(dataset, devices, {.seed = 5, .epochs = 2, .threads = 2, .prefetch = prefetch});
        EXPECT_EQ(digests_of(loader, devices), expected) << replicas << " replicas, prefetch " << prefetch;
        EXPECT_GT(devices[0].memory_use().pinned_bytes, 0U);
      }
      EXPECT_EQ(devices[0].memory_use().pinned_bytes, 0U);
      EXPECT_EQ(devices[0].memory_use().device_bytes, 0U);
    }
  }
}

TEST(Loader, ReadsAheadWhereTheSourceBlocks) {
  const auto source = std::make_shared<FakeSource>(
      40, [](std::uint64_t index) { std::this_thread::sleep_for(std::chrono::milliseconds(index % 7)); });
  const Dataset dataset = Dataset::from(source).shuffle().batch({.global_batch = 6});
  const auto expected = cpu_digests_of(dataset, {.seed = 1, .threads = 1, .reader_threads = 1});
  EXPECT_EQ(digests_of(dataset, 2, {.seed = 1, .threads = 2, .reader_threads = 8}), expected);
}

TEST(Loader, SplitsAGlobalBatchInOrderAndZeroesPadding) {
  DeviceGroup devices = test_devices(8);
  Loader loader(Dataset::from(numbers(13)).skip(1).batch({.global_batch = 10}), devices,
                {.epochs = 2, .prefetch = 0});
  EXPECT_EQ(loader.local_rows(), 2);
  for (std::uint64_t sequence = 0; sequence < 4; ++sequence) {
    const std::int64_t examples = sequence % 2 == 0 ? 10 : 2;
    std::int64_t expected = sequence % 2 == 0 ? 1 : 11;
    std::int64_t row = 0;
    for (int r = 0; r < 8; ++r) {
      const auto batch = loader.next(r);
      ASSERT_TRUE(batch);
      const BatchPosition& at = batch->position();
      EXPECT_EQ(at.epoch, sequence / 2);
      EXPECT_EQ(at.step, sequence % 2);
      EXPECT_EQ(at.sequence, sequence);
      EXPECT_EQ(at.global_examples, examples);
      EXPECT_EQ(at.first_row, row);
      EXPECT_EQ(at.last_of_epoch, sequence % 2 == 1);
      EXPECT_EQ(batch->tensor("value").shape, (Shape{2}));
      const auto values = device_values(devices[r], *batch);
      for (std::int64_t i = 0; i < 2; ++i) {
        EXPECT_EQ(values[static_cast<std::size_t>(i)], i < batch->examples() ? expected + i : 0);
      }
      for (std::uint64_t record : batch->records()) EXPECT_EQ(static_cast<std::int64_t>(record), expected++);
      row += batch->examples();
    }
    EXPECT_EQ(row, examples);
  }
  for (int r = 0; r < 8; ++r) EXPECT_FALSE(loader.next(r));
  EXPECT_FALSE(loader.next(0)) << "the end is not passed";
}

TEST(Loader, GivesReplicasNothingWhereThereAreMoreThanExamples) {
  DeviceGroup devices = test_devices(8);
  Loader loader(Dataset::from(numbers(3)).batch({.global_batch = 10}), devices);
  EXPECT_EQ(loader.steps_per_epoch(), 1U);
  std::int64_t sum = 0;
  for (int r = 0; r < 8; ++r) sum += loader.next(r)->examples();
  EXPECT_EQ(sum, 3);
}

TEST(Loader, EndsAtOnceWhereThereIsNothing) {
  DeviceGroup devices = test_devices(2);
  EXPECT_FALSE(Loader(Dataset::from(numbers(0)).shuffle().batch({.global_batch = 4}), devices).next(1));
  EXPECT_FALSE(Loader(Dataset::from(numbers(5)).batch({.global_batch = 4}), devices, {.epochs = 0}).next(0));
  const Dataset dropped = Dataset::from(numbers(3)).batch({.global_batch = 4, .drop_remainder = true});
  EXPECT_FALSE(Loader(dropped, devices).next(0));
}

TEST(Loader, PointsIntoItsSlotsOnHostMemory) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(Dataset::from(numbers(40)).batch({.global_batch = 4}), devices, {.prefetch = 1});
  std::set<const void*> places;
  while (const auto batch = loader.next()) {
    EXPECT_TRUE(batch->ready().ready());
    places.insert(batch->tensor("value").data);
  }
  EXPECT_EQ(places.size(), 2U) << "a ring of two slots, allocated once";
}

TEST(Loader, RefillsOnlyAfterTheConsumersStream) {
  for (const bool copied : {false, true}) {
    DeviceGroup devices = copied ? own_memory_devices(1) : cpu_replicas(1);
    Loader loader(Dataset::from(numbers(8)).batch({.global_batch = 4}), devices,
                  {.prefetch = 0, .stall_timeout_seconds = copied ? 60 : 1.0});
    const auto stream = devices[0].create_stream();
    Gate gate;
    auto batch = loader.next();
    stream->wait(batch->ready());
    stream->call(gate.blocker());
    // Pinned: a copy to other host memory would wait for the gate.
    const Buffer seen = devices[0].allocate_pinned(4 * sizeof(std::int64_t));
    stream->copy(seen.data(), batch->tensor("value").data, seen.size());
    batch->release(*stream);
    if (copied) {
      // Assembly goes on in pinned memory; the copy waits on the device.
      const auto second = loader.next();
      ASSERT_TRUE(second);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      EXPECT_FALSE(second->ready().ready());
      gate.open();
      second->ready().wait();
      EXPECT_EQ(device_values(devices[0], *second), (std::vector<std::int64_t>{4, 5, 6, 7}));
    } else {
      EXPECT_THROW(loader.next(), Error);
      gate.open();
      stream->synchronize();
      EXPECT_EQ(device_values(devices[0], *loader.next()), (std::vector<std::int64_t>{4, 5, 6, 7}));
    }
    stream->synchronize();
    const auto* values = reinterpret_cast<const std::int64_t*>(seen.data());
    EXPECT_EQ(std::vector(values, values + 4), (std::vector<std::int64_t>{0, 1, 2, 3}));
  }
}

TEST(Loader, ServesReplicasFromTheirOwnThreads) {
  DeviceGroup devices = test_devices(4);
  Loader loader(Dataset::from(numbers(1000)).shuffle().batch({.global_batch = 32}), devices,
                {.epochs = 5, .threads = 2});
  std::atomic<std::int64_t> sum{0};
  std::vector<std::thread> threads;
  for (int r = 0; r < 4; ++r) {
    threads.emplace_back([&, r] {
      while (const auto batch = loader.next(r)) {
        const auto values = device_values(devices[r], *batch);
        for (std::int64_t i = 0; i < batch->examples(); ++i) sum += values[static_cast<std::size_t>(i)];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum.load(), 5 * 999 * 1000 / 2);
  EXPECT_EQ(loader.stats().batches, 5U * 32U);
  EXPECT_EQ(loader.stats().examples, 5000U);
  EXPECT_EQ(loader.stats().bytes, 5000U * 8U);
}

TEST(Loader, CountsWhatItDoes) {
  DeviceGroup devices = test_devices(1);
  const auto source = std::make_shared<FakeSource>(
      20, [](std::uint64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
  Loader loader(Dataset::from(source).batch({.global_batch = 5}), devices, {.threads = 1, .reader_threads = 1});
  while (loader.next()) {
  }
  const LoaderStats stats = loader.stats();
  EXPECT_EQ(stats.batches, 4U);
  EXPECT_GE(stats.read_ns, 40'000'000U);
  EXPECT_GE(stats.first_batch_ns, 10'000'000U);
  EXPECT_GT(stats.consumer_wait_ns, 0U);
  EXPECT_GT(stats.operate_ns, 0U);
  EXPECT_EQ(stats.decode_ns, 0U);
  EXPECT_LE(stats.ready_batches, 3.0);
}

TEST(Loader, RunsUserFunctionsDeterministically) {
  UserMap map{.name = "noise", .output = {.dtype = DType::kF32, .shape = {8, 8, 3}}};
  map.function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox& random) {
    for (std::size_t i = 0; i < in.size(); ++i) {
      const float value = static_cast<float>(std::to_integer<int>(in[i])) + random.uniform();
      std::memcpy(out.data() + i * sizeof value, &value, sizeof value);
    }
  };
  const Dataset dataset =
      Dataset::from(noise_images(60, 8, 8)).shuffle().map(flip() | user_map(map)).batch({.global_batch = 16});
  const auto expected = cpu_digests_of(dataset, {.seed = 1, .epochs = 2, .threads = 1});
  EXPECT_EQ(digests_of(dataset, 4, {.seed = 1, .epochs = 2, .threads = 4}), expected);
}

TEST(Loader, RefusesWrongOptions) {
  DeviceGroup devices = test_devices(1);
  const Dataset dataset = Dataset::from(numbers(10)).batch({.global_batch = 4});
  EXPECT_THROW(Loader(Dataset::from(numbers(10)), devices), ConfigError);
  EXPECT_THROW(Loader(dataset, devices, {.threads = -1}), ConfigError);
  EXPECT_THROW(Loader(dataset, devices, {.reader_threads = -1}), ConfigError);
  EXPECT_THROW(Loader(dataset, devices, {.reader_limit = 0}), ConfigError);
  EXPECT_THROW(Loader(dataset, devices, {.cpu_budget = -1}), ConfigError);
  EXPECT_THROW(Loader(dataset, devices, {.threads = 3, .cpu_budget = 2}), ConfigError);
  DeviceGroup none({});
  EXPECT_THROW(Loader(dataset, none), ConfigError);
  Loader loader(dataset, devices, {.threads = 3});
  EXPECT_EQ(loader.threads(), 3);
  EXPECT_THROW(loader.next(1), ConfigError);
  EXPECT_THROW(loader.next()->tensor("image"), ConfigError);
}

}  // namespace
}  // namespace headrace::test
