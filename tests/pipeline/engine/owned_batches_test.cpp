#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/gate.h"

namespace headrace::test {
namespace {

Dataset batched_numbers(std::uint64_t records, std::int64_t global) {
  return Dataset::from(numbers(records)).batch({.global_batch = global}).prefetch(2);
}

std::vector<std::int64_t> owned_values(const Batch& batch) {
  const auto* const values = batch.tensor("value").as<std::int64_t>();
  return {values, values + batch.examples()};
}

TEST(OwnedBatches, AllOfAStreamMayBeKept) {
  DeviceGroup devices = cpu_replicas(1);
  std::vector<Batch> kept;
  {
    Loader loader(batched_numbers(100, 8), devices,
                  {.epochs = 3, .stall_timeout_seconds = 20, .owned_batches = true});
    while (std::optional<Batch> batch = loader.next()) kept.push_back(std::move(*batch));
  }
  ASSERT_EQ(kept.size(), 39U) << "they outlive their loader";
  for (const Batch& batch : kept) {
    std::vector<std::int64_t> expected(static_cast<std::size_t>(batch.examples()));
    std::iota(expected.begin(), expected.end(), static_cast<std::int64_t>(8 * batch.position().step));
    EXPECT_EQ(owned_values(batch), expected);
    ASSERT_EQ(batch.records().size(), expected.size());
    EXPECT_EQ(batch.records().front(), static_cast<std::uint64_t>(expected.front()));
    EXPECT_TRUE(batch.ready().ready());
    EXPECT_TRUE(batch.writable());
  }
  kept.clear();
  EXPECT_EQ(devices[0].memory_use().device_bytes, 0U);
}

TEST(OwnedBatches, MemoryThatComesBackServesLaterOnes) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(batched_numbers(1000, 2), devices, {.owned_batches = true});
  std::set<const void*> places;
  while (std::optional<Batch> batch = loader.next()) places.insert(batch->tensor("value").data);
  EXPECT_LE(places.size(), 8U);
}

// Whoever wrote to all of a batch's rows, padding included, leaves nothing of it in a later one.
TEST(OwnedBatches, HaveZerosBehindTheirExamples) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(batched_numbers(11, 4), devices, {.epochs = 6, .owned_batches = true});
  while (std::optional<Batch> batch = loader.next()) {
    auto* const values = batch->tensor("value").as<std::int64_t>();
    for (std::int64_t row = batch->examples(); row < 4; ++row) EXPECT_EQ(values[row], 0);
    std::memset(values, 0xFF, 4 * sizeof *values);
  }
}

TEST(OwnedBatches, AreTheSameStream) {
  const auto expected = cpu_digests_of(batched_numbers(211, 16), {.epochs = 2});
  for (const char* kind : {"cpu", "discrete"}) {
    for (int replicas : {1, 3}) {
      DeviceGroup devices = devices_of_kind(kind, replicas);
      Loader loader(batched_numbers(211, 16), devices, {.epochs = 2, .threads = 2, .owned_batches = true});
      EXPECT_EQ(digests_of(loader, devices), expected) << replicas << " on " << kind;
    }
  }
}

TEST(OwnedBatches, OfReplayedBytesAreNone) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(batched_numbers(100, 4), devices, {.owned_batches = true, .headspace = 3});
  EXPECT_FALSE(loader.next()->writable());
}

// Eight numbers by fours, none of which is there before the gate opens.
Dataset behind(Gate& gate) {
  GeneratorOptions options{.name = "slow", .fields = {{.name = "value", .dtype = DType::kI64, .shape = {}}}};
  options.records = 8;
  options.function = [block = gate.blocker()](std::uint64_t index, RecordWriter& record) {
    block();
    record.put(0, static_cast<std::int64_t>(index));
  };
  return Dataset::from(generator(options)).batch({.global_batch = 4});
}

TEST(WhileWaiting, IsCalledAndMayLeaveNext) {
  Gate gate;
  DeviceGroup devices = cpu_replicas(1);
  int calls = 0;
  struct Interrupted {};
  LoaderOptions run;
  run.while_waiting = [&] {
    if (++calls == 3) throw Interrupted();
  };
  Loader loader(behind(gate), devices, run);
  EXPECT_THROW(loader.next(), Interrupted);
  gate.open();
  const std::optional<Batch> batch = loader.next();
  ASSERT_TRUE(batch);
  EXPECT_EQ(owned_values(*batch), (std::vector<std::int64_t>{0, 1, 2, 3}))
      << "the batch is there for the next call";
}

TEST(WhileWaiting, DoesNotMoveTheTimeOut) {
  Gate gate;
  DeviceGroup devices = cpu_replicas(1);
  LoaderOptions run{.stall_timeout_seconds = 0.2};
  run.while_waiting = [] {};
  Loader loader(behind(gate), devices, run);
  EXPECT_EQ(error_of([&] { loader.next(); }).code(), ErrorCode::kTimeout);
  gate.open();
}

}  // namespace
}  // namespace headrace::test
