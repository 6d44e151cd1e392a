// One stream, whatever the loader's options and the records.
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/gate.h"
#include "headrace/tests/support/long_run.h"

namespace headrace::test {
namespace {

// The stream of every combination of threads, replicas, prefetch, cache and continuation has the digests of one
// thread without any of them: in a long run all combinations, else every 23rd.

constexpr std::uint64_t kStreamEpochs = 2;
enum class Kept { kNothing, kCold, kWarm, kPart };
using OpensCache = std::function<std::shared_ptr<SampleCache>()>;

class OneStream : public testing::Test {
 protected:
  Dataset dataset(const std::shared_ptr<SampleCache>& cache) const {
    const Dataset decoded = Dataset::from(source_).decode();
    return (cache ? decoded.cache(cache) : decoded)
        .shuffle()
        .map(random_resized_crop({.size = 12}) | flip() | normalize({0.5F}, {0.25F}))
        .batch({.global_batch = 6});
  }

  // Returns what opens the cache: the same one in memory each time, a folder's anew, as another process would.
  OpensCache cache(Kept kept, bool on_disk, int number) {
    if (kept == Kept::kNothing) return [] { return nullptr; };
    const std::uint64_t budget = kept == Kept::kPart ? 15'000 : 0;
    const auto folder = folder_ / (kept == Kept::kWarm ? "warm" : std::to_string(number));
    const OpensCache open = on_disk ? OpensCache([=] { return disk(folder, {.budget_bytes = budget}); })
                                    : [kept = memory(budget)] { return kept; };
    if (kept == Kept::kWarm) digests_of(dataset(open()), 1, {.seed = 4});
    return open;
  }

  std::vector<BatchDigest> run(const OpensCache& cache, int replicas, LoaderOptions options, std::uint64_t taken) {
    DeviceGroup devices = test_devices(replicas);
    std::vector<BatchDigest> all;
    if (taken > 0) {
      Loader first(dataset(cache()), devices, options);
      StreamDigest digest(devices);
      for (std::uint64_t i = 0; i < taken; ++i) all.push_back(*digest.next(first));
      options.start = first.state();
    }
    Loader rest(dataset(cache()), devices, options);
    std::ranges::move(digests_of(rest, devices), std::back_inserter(all));
    return all;
  }

  SourcePtr source_ = fake_jpegs(17);
  TempFolder folder_;
};

TEST_F(OneStream, OfEveryCombination) {
  const auto expected =
      cpu_digests_of(dataset(nullptr), {.seed = 4, .epochs = kStreamEpochs, .threads = 1, .prefetch = 0});
  ASSERT_EQ(expected.size(), 6U);
  const int every = long_or(1, 23);
  int number = 0, resumed_from_disk = 0;
  for (const int threads : {1, 2, 4, 0}) {  // 0: as many as the machine has
    for (const int replicas : {1, 2, 4, 8}) {
      for (int prefetch = 0; prefetch <= 8; ++prefetch) {
        for (const Kept kept : {Kept::kNothing, Kept::kCold, Kept::kWarm, Kept::kPart}) {
          for (const std::uint64_t taken : {0, 1 + prefetch % 5}) {
            const bool on_disk = number / 8 % 2 == 1;  // every other prefetch
            if (++number % every != 0) continue;
            resumed_from_disk += on_disk && kept != Kept::kNothing && taken > 0 ? 1 : 0;
            const LoaderOptions options{
                .seed = 4, .epochs = kStreamEpochs, .threads = threads, .prefetch = prefetch};
            ASSERT_EQ(run(cache(kept, on_disk, number), replicas, options, taken), expected)
                << threads << " threads, " << replicas << " replicas, prefetch " << prefetch << ", cache "
                << static_cast<int>(kept) << (on_disk ? " on disk" : "") << ", continued after " << taken;
          }
        }
      }
    }
  }
  EXPECT_GE(resumed_from_disk, 5);
}

// Records of many fields, from the source to the batch.

TEST(PerField, ReadsWhatWasNotSetAsNothing) {
  PerField<int> values;
  EXPECT_EQ(std::as_const(values)[5], 0);
  values[3] = 7;
  EXPECT_EQ(values.size(), 4U);
  PerField<int> copy = values;
  values = {1, 2};
  EXPECT_EQ(std::vector<int>(copy.begin(), copy.end()), (std::vector<int>{0, 0, 0, 7}));
  EXPECT_EQ(std::vector<int>(values.begin(), values.end()), (std::vector<int>{1, 2}));
  EXPECT_EQ(std::as_const(values)[3], 0);
}

std::string name_of(std::size_t field) { return "f" + std::to_string(field); }

// Field f of record r is 1000 r + f.
SourcePtr wide(std::uint64_t records, std::size_t fields) {
  std::vector<Array> arrays;
  for (std::size_t field = 0; field < fields; ++field) {
    std::vector<std::int64_t> values(records);
    for (std::size_t r = 0; r < records; ++r) values[r] = static_cast<std::int64_t>(1000 * r + field);
    Array array{.field = {.name = name_of(field), .dtype = DType::kI64, .shape = {}}, .bytes = {}};
    array.bytes.resize(records * sizeof(std::int64_t));
    std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
    arrays.push_back(std::move(array));
  }
  return in_memory("wide", records, std::move(arrays));
}

std::vector<std::int64_t> field_values(Device& device, const Batch& batch, const std::string& field) {
  return download<std::int64_t>(device, batch.tensor(field));
}

// Adds the first and the last field, by an operation on several fields.
Operations add_ends(std::size_t fields) {
  const auto add = [](UserSample& sample) {
    const std::int64_t sum = sample.elements<std::int64_t>(0)[0] + sample.elements<std::int64_t>(1)[0];
    sample.put(0, std::as_bytes(std::span(&sum, 1)));
  };
  return user_operation({.name = "add ends",
                         .inputs = {name_of(0), name_of(fields - 1)},
                         .outputs = {{.name = "sum", .dtype = DType::kI64, .shape = {}}},
                         .function = add});
}

TEST(ManyFields, ReachEveryReplicaTogether) {
  constexpr std::size_t kWideFields = kMaxFields - 1;
  DeviceGroup devices = test_devices(2);
  const Dataset data = Dataset::from(wide(30, kWideFields)).cache(memory()).shuffle().map(add_ends(kWideFields));
  Loader loader(data.batch({.global_batch = 8}), devices, {.epochs = 2});
  std::int64_t records = 0;
  for (int r = 0; auto batch = loader.next(r); r = 1 - r) {
    const auto first = field_values(devices[r], *batch, name_of(0));
    const auto sums = field_values(devices[r], *batch, "sum");
    for (std::size_t row = 0; row < static_cast<std::size_t>(batch->examples()); ++row, ++records) {
      EXPECT_EQ(first[row], 1000 * static_cast<std::int64_t>(batch->records()[row]));
      EXPECT_EQ(sums[row], 2 * first[row] + static_cast<std::int64_t>(kWideFields - 1));
    }
    for (std::size_t field = 1; field < kWideFields; ++field) {
      const auto values = field_values(devices[r], *batch, name_of(field));
      EXPECT_EQ(values[0] - first[0], static_cast<std::int64_t>(field));
    }
  }
  EXPECT_EQ(records, 2 * 30);
}

TEST(ManyFields, HaveALimitThatIsNamed) {
  const ConfigError error = error_of<ConfigError>([&] { wide(3, kMaxFields + 1); });
  EXPECT_NE(std::string(error.what()).find("1 to 64"), std::string::npos) << error.what();
  EXPECT_THROW(Dataset::from(wide(3, kMaxFields)).map(add_ends(kMaxFields)).batch({.global_batch = 2}).fields(),
               ConfigError);
}

// Headspace mode: the first batches again and again, for nothing.

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
