// Headspace mode: the first batches again and again, for nothing.
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

std::vector<std::int64_t> values_in_batch(Device& device, const Batch& batch) {
  return download_examples<std::int64_t>(device, batch, "value");
}

TEST(Headspace, ReplaysTheRingAndReadsNothingMore) {
  const auto source = std::make_shared<FakeSource>(100);
  DeviceGroup devices = test_devices(1);
  Loader loader(Dataset::from(source).batch({.global_batch = 10}), devices,
                {.epochs = 1000, .threads = 2, .prefetch = 3, .headspace = 1});
  std::vector<std::vector<std::int64_t>> first;
  for (int i = 0; i < 4; ++i) first.push_back(values_in_batch(devices[0], *loader.next()));
  const std::uint64_t reads = source->reads();
  for (std::size_t i = 4; i < 500; ++i) {
    const std::optional<Batch> batch = loader.next();
    ASSERT_EQ(values_in_batch(devices[0], *batch), first[i % 4]) << i;
    ASSERT_EQ(batch->position().sequence, i);
  }
  EXPECT_EQ(source->reads(), reads);
  EXPECT_GE(loader.stats().batches, 499U);
}

TEST(Headspace, HasNoIdentity) {
  DeviceGroup devices = test_devices(1);
  Loader loader(Dataset::from(numbers(10)).batch({.global_batch = 5}), devices, {.headspace = 2});
  EXPECT_THROW(loader.state(), ConfigError);
  StreamDigest digest(devices);
  EXPECT_THROW(digest.next(loader), ConfigError);
}

TEST(Headspace, CopiesAgainWhereBatchesAreCopied) {
  DeviceGroup devices = own_memory_devices(1);
  Loader loader(Dataset::from(numbers(20)).batch({.global_batch = 10}), devices,
                {.epochs = 50, .threads = 1, .prefetch = 1, .headspace = 2});
  int batches = 0;
  while (auto batch = loader.next()) {
    batch->ready().wait();
    EXPECT_EQ(batch->examples(), 10);
    ++batches;
  }
  EXPECT_EQ(batches, 100);
}

}  // namespace
}  // namespace headrace::test
