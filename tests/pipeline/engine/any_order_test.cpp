// Loaders that hand batches out as they become ready: every batch is the one that it is in order, each comes once
// an epoch, and a run continues from any state. What is slow waits for the test, not for a time.
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/gate.h"

namespace headrace::test {
namespace {

constexpr std::uint64_t kScattered = 22, kScatteredRows = 4,
                        kScatteredSteps = 6;  // the last batch of an epoch has 2 examples

// Adds a random number to a record's value; `before` is called with that value.
Operations scatter(std::function<void(std::uint64_t)> before) {
  return user_map({.name = "scatter",
                   .field = "value",
                   .output = {.dtype = DType::kI64, .shape = {}},
                   .function = [before = std::move(before)](std::span<const std::byte> in, const Shape&,
                                                            std::span<std::byte> out, Philox& random) {
                     std::uint64_t value = 0;
                     std::memcpy(&value, in.data(), sizeof value);
                     if (before) before(value);
                     value += std::uint64_t{1000} * (random.next_u32() % 1000);
                     std::memcpy(out.data(), &value, sizeof value);
                   }});
}

Dataset scattered(std::function<void(std::uint64_t)> before = {}) {
  return Dataset::from(numbers(kScattered))
      .map(scatter(std::move(before)))
      .batch({.global_batch = kScatteredRows});
}

SourcePtr numbers_in_a_stream() {
  return record_stream({.name = "counting", .fields = numbers(1)->info().fields, .open = [](std::uint64_t first) {
                          return [next = first](RecordWriter& record) mutable {
                            if (next >= kScattered) return false;
                            record.put(0, static_cast<std::int64_t>(next++));
                            return true;
                          };
                        }});
}

// Data whose batch `sequence` is not made until the test says so. Batches are not shuffled. REQUIRES: fewer
// batches are prefetched than an epoch has, so that the batches with its records are made in order.
class SlowBatch {
 public:
  explicit SlowBatch(std::uint64_t sequence, const SourcePtr& source = numbers(kScattered)) {
    const auto before = [wait = gate_.blocker(), epoch = sequence / kScatteredSteps,
                         slow = sequence % kScatteredSteps * kScatteredRows,
                         seen = std::make_shared<std::atomic<std::uint64_t>>(0)](std::uint64_t value) {
      if (value == slow && seen->fetch_add(1) == epoch) wait();
    };
    data_.emplace(Dataset::from(source).map(scatter(before)).batch({.global_batch = kScatteredRows}));
  }

  const Dataset& data() const noexcept { return *data_; }
  void finish() { gate_.open(); }

 private:
  Gate gate_;
  std::optional<Dataset> data_;
};

using NumberedDigests = std::map<std::uint64_t, std::string>;  // by number of the batch over all epochs

// Adds the loader's next batches, up to `count`; none may have come before.
void take_into(Loader& loader, DeviceGroup& devices, std::uint64_t count, NumberedDigests& all) {
  StreamDigest digest(devices);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto batch = digest.next(loader);
    if (!batch) return;
    EXPECT_TRUE(all.emplace(batch->epoch * kScatteredSteps + batch->step, batch->sha256).second)
        << "batch " << batch->step << " of epoch " << batch->epoch << " came twice";
  }
}

constexpr std::uint64_t kTheRest = ~std::uint64_t{0};

NumberedDigests ordered_digests(std::uint64_t epochs) {
  NumberedDigests all;
  for (const BatchDigest& batch : cpu_digests_of(scattered(), {.seed = 4, .epochs = epochs})) {
    all.emplace(batch.epoch * kScatteredSteps + batch.step, batch.sha256);
  }
  return all;
}

void expect_overtaken(DeviceGroup devices) {
  SlowBatch slow(1);
  Loader loader(slow.data(), devices, {.seed = 4, .threads = 2, .prefetch = 3, .in_order = false});
  EXPECT_FALSE(loader.in_order());
  std::vector<std::uint64_t> order;
  for (int i = 0; i < 4; ++i) order.push_back(loader.next()->position().sequence);
  EXPECT_THAT(order, UnorderedElementsAre(0, 2, 3, 4)) << "all that have a slot";
  const LoaderState state = loader.state();
  EXPECT_EQ(state.sequence, 1U);
  EXPECT_THAT(state.ahead, ElementsAre(2, 3, 4));
  slow.finish();
  EXPECT_EQ(loader.next()->position().sequence, 1U);
  const auto last = loader.next();
  EXPECT_EQ(last->position().sequence, 5U);
  EXPECT_TRUE(last->position().last_of_epoch);
  EXPECT_FALSE(loader.next());
  EXPECT_EQ(loader.state().sequence, kScatteredSteps);
  EXPECT_THAT(loader.state().ahead, IsEmpty());
  EXPECT_EQ(loader.stats().batches, kScatteredSteps);
}

TEST(AnyOrder, OvertakesABatchThatIsNotReady) { expect_overtaken(test_devices(1)); }

// A batch is sent to its device before an older one that is not written.
TEST(AnyOrder, OvertakesABatchOnTheWayToADevice) { expect_overtaken(own_memory_devices(1)); }

TEST(AnyOrder, HasTheSameBatchesWhateverRunsIt) {
  constexpr std::uint64_t kEpochs = 3;
  const NumberedDigests expected = ordered_digests(kEpochs);
  for (const int threads : {1, 2, 4}) {
    for (const int prefetch : {0, 1, 3, 8}) {
      DeviceGroup devices = test_devices(1 + prefetch % 3);
      Loader loader(scattered(), devices,
                    {.seed = 4, .epochs = kEpochs, .threads = threads, .prefetch = prefetch, .in_order = false});
      NumberedDigests all;
      take_into(loader, devices, kTheRest, all);
      EXPECT_EQ(all, expected) << threads << " threads, prefetch " << prefetch;
    }
  }
}

TEST(AnyOrder, KeepsEpochsApartAndSaysWhichBatchEndsOne) {
  for (std::uint64_t slow_batch = 0; slow_batch < 2 * kScatteredSteps; ++slow_batch) {
    SlowBatch slow(slow_batch);
    DeviceGroup devices = test_devices(1);
    Loader loader(slow.data(), devices, {.seed = 4, .epochs = 2, .threads = 2, .prefetch = 5, .in_order = false});
    std::set<std::uint64_t> seen;
    const std::uint64_t epoch = slow_batch / kScatteredSteps;
    for (std::uint64_t turn = 0; turn < 2 * kScatteredSteps; ++turn) {
      if (turn == epoch * kScatteredSteps + kScatteredSteps - 1)
        slow.finish();  // nothing else of its epoch is left
      const auto batch = loader.next();
      EXPECT_EQ(batch->position().epoch, turn / kScatteredSteps);
      EXPECT_EQ(batch->position().last_of_epoch, turn % kScatteredSteps == kScatteredSteps - 1);
      seen.insert(batch->position().sequence);
    }
    EXPECT_FALSE(loader.next());
    EXPECT_EQ(seen.size(), 2 * kScatteredSteps);
  }
}

TEST(AnyOrder, IsOneOrderForAllReplicas) {
  for (const int replicas : {2, 4}) {
    DeviceGroup devices = test_devices(replicas);
    Loader loader(scattered(), devices, {.seed = 4, .epochs = 8, .threads = 4, .prefetch = 4, .in_order = false});
    std::vector<std::vector<std::uint64_t>> orders(static_cast<std::size_t>(replicas));
    std::vector<std::thread> threads;
    for (int r = 0; r < replicas; ++r) {
      threads.emplace_back([&, r] {
        while (const auto batch = loader.next(r)) {
          orders[static_cast<std::size_t>(r)].push_back(batch->position().sequence);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::set(orders[0].begin(), orders[0].end()).size(), 8 * kScatteredSteps);
    for (const auto& order : orders) EXPECT_EQ(order, orders[0]);
  }
}

// A state at which batches have overtaken one, where the epoch has as many after it.
LoaderState overtaken_at(std::uint64_t step, const SourcePtr& source, std::uint64_t epochs, NumberedDigests& all) {
  const std::uint64_t before = step < 2 ? 0 : step - 2;
  const bool fits = step >= 2 && before % kScatteredSteps + 2 < kScatteredSteps;
  SlowBatch slow(before, source);
  if (!fits) slow.finish();
  DeviceGroup devices = test_devices(1 + static_cast<int>(step % 3));
  Loader loader(slow.data(), devices,
                {.seed = 4, .epochs = epochs, .threads = 2, .prefetch = 3, .in_order = false});
  take_into(loader, devices, step, all);
  const LoaderState state = loader.state();
  if (fits) {
    EXPECT_LE(state.sequence, before);
    EXPECT_GE(state.ahead.size(), 2U);
  }
  EXPECT_EQ(state.sequence + state.ahead.size(), step);
  EXPECT_EQ(LoaderState::parse(state.serialize()), state);
  slow.finish();
  return state;
}

TEST(AnyOrder, ContinuesAtEveryStepInOrderAndInAnyOrder) {
  constexpr std::uint64_t kEpochs = 2;
  const NumberedDigests expected = ordered_digests(kEpochs);
  for (std::uint64_t step = 0; step <= kEpochs * kScatteredSteps; ++step) {
    NumberedDigests before;
    const LoaderState state = overtaken_at(step, numbers(kScattered), kEpochs, before);
    EXPECT_EQ(before.size(), step);
    for (const bool ordered : {true, false}) {
      for (const int threads : {1, 2, 4}) {
        NumberedDigests all = before;
        DeviceGroup devices = test_devices(1 + static_cast<int>(step + static_cast<std::uint64_t>(threads)) % 3);
        Loader rest(scattered(), devices,
                    {.seed = 4,
                     .epochs = kEpochs,
                     .threads = threads,
                     .prefetch = static_cast<int>(step % 5),
                     .in_order = ordered,
                     .start = state});
        EXPECT_EQ(rest.state(), state);
        take_into(rest, devices, kTheRest, all);
        EXPECT_EQ(all, expected) << "from " << state.serialize() << ", threads " << threads;
        EXPECT_EQ(rest.state().sequence, kEpochs * kScatteredSteps);
        EXPECT_THAT(rest.state().ahead, IsEmpty());
      }
    }
  }
}

TEST(AnyOrder, ContinuesAnywhereABatchATime) {
  constexpr std::uint64_t kEpochs = 2;
  NumberedDigests all;
  LoaderState state = Loader(scattered(), *std::make_unique<DeviceGroup>(test_devices(1)), {.seed = 4}).state();
  for (std::uint64_t step = 0; step < kEpochs * kScatteredSteps; ++step) {
    SlowBatch slow(state.sequence % kScatteredSteps);  // a loader's first pass over its data
    const bool blocks = state.ahead.size() < 2 && state.sequence % kScatteredSteps + 3 < kScatteredSteps;
    if (!blocks) slow.finish();
    DeviceGroup devices = test_devices(1);
    Loader loader(slow.data(), devices,
                  {.seed = 4,
                   .epochs = kEpochs,
                   .threads = 2,
                   .prefetch = 3,
                   .in_order = step % 4 == 3 && !blocks,
                   .start = state});
    take_into(loader, devices, 1, all);
    state = loader.state();
    slow.finish();
  }
  EXPECT_EQ(all, ordered_digests(kEpochs));
}

TEST(AnyOrder, IsThatOfStreamsToo) {
  const NumberedDigests expected = ordered_digests(1);
  for (std::uint64_t step = 0; step <= kScatteredSteps; ++step) {
    NumberedDigests before;
    const LoaderState state = overtaken_at(step, numbers_in_a_stream(), 1, before);
    for (const bool ordered : {true, false}) {
      for (const int prefetch : {0, 3}) {
        NumberedDigests all = before;
        DeviceGroup devices = test_devices(2);
        const Dataset data =
            Dataset::from(numbers_in_a_stream()).map(scatter({})).batch({.global_batch = kScatteredRows});
        Loader rest(data, devices, {.seed = 4, .prefetch = prefetch, .in_order = ordered, .start = state});
        take_into(rest, devices, kTheRest, all);
        EXPECT_EQ(all, expected) << "from " << state.serialize();
      }
    }
  }
}

// Of an epoch whose last batches were handed out before.
TEST(AnyOrder, EndsAnEpochWithTheBatchThatIsLeft) {
  DeviceGroup devices = test_devices(1);
  for (const bool ordered : {true, false}) {
    LoaderState state = Loader(scattered(), devices, {.seed = 4}).state();
    state.sequence = 3;
    state.ahead = {4, 5};
    Loader loader(scattered(), devices, {.seed = 4, .epochs = 2, .in_order = ordered, .start = state});
    EXPECT_TRUE(loader.next()->position().last_of_epoch);
    EXPECT_EQ(loader.state().sequence, 6U);
    EXPECT_EQ(loader.next()->position().epoch, 1U);
    EXPECT_EQ(loader.stats().batches, 2U);
  }
}

TEST(AnyOrder, StopsWhileAllWaits) {
  SlowBatch slow(0);
  DeviceGroup devices = test_devices(1);
  Loader loader(slow.data(), devices, {.threads = 2, .prefetch = 1, .in_order = false});
  EXPECT_EQ(loader.next()->position().sequence, 1U);
  auto waiting = std::async(std::launch::async, [&] {
    try {
      loader.next();
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kInternal;
  });
  loader.stop();
  EXPECT_EQ(waiting.get(), ErrorCode::kCancelled);
}

TEST(AnyOrder, RaisesAnErrorOnceAndContinuesBeforeIt) {
  Gate gate;
  const auto before = [wait = gate.blocker()](std::uint64_t value) {
    if (value == 0) wait();
    if (value == 9) throw std::runtime_error("nine");
  };
  DeviceGroup devices = test_devices(2);
  Loader loader(scattered(before), devices, {.seed = 4, .threads = 2, .prefetch = 3, .in_order = false});
  for (int r = 0; r < 2; ++r) EXPECT_EQ(loader.next(r)->position().sequence, 1U);
  for (const bool again : {false, true}) {
    for (int r = 0; r < 2; ++r) {
      const Error error = error_of([&] { loader.next(r); });
      EXPECT_EQ(error.code() == ErrorCode::kCancelled, again);
      EXPECT_THAT(error.what(), HasSubstr("nine"));
    }
  }
  EXPECT_EQ(loader.state().sequence, 0U);
  EXPECT_THAT(loader.state().ahead, ElementsAre(1));
}

TEST(AnyOrder, ReplaysItsBatches) {
  DeviceGroup devices = test_devices(1);
  Loader loader(scattered(), devices, {.epochs = 5, .prefetch = 2, .in_order = false, .headspace = 3});
  std::set<std::uint64_t> seen;
  while (const auto batch = loader.next()) seen.insert(batch->position().sequence);
  EXPECT_EQ(seen.size(), 5 * kScatteredSteps);
}

TEST(AnyOrder, HasNoDigestAsAStream) {
  DeviceGroup devices = test_devices(1);
  Loader loader(scattered(), devices, {.in_order = false});
  StreamDigest digest(devices);
  EXPECT_TRUE(digest.next(loader));
  EXPECT_THROW(digest.finish(), ConfigError);
}

TEST(AnyOrder, IsRefusedToAPartOfTheReplicas) {
  DeviceGroup devices = test_devices(1);
  const ConfigError error = error_of<ConfigError>(
      [&] { const Loader refused(scattered(), devices, {.world = {.total = 2, .first = 1}, .in_order = false}); });
  EXPECT_THAT(error.what(), HasSubstr("LoaderOptions::in_order = false: the loader serves 1 of 2 replicas"));
  EXPECT_THAT(error.what(), HasSubstr("leave out LoaderOptions::in_order = false"));
  EXPECT_NO_THROW(Loader(scattered(), devices, {.world = {.total = 1}, .in_order = false}));
  EXPECT_EQ(Loader(scattered(), devices, {.seed = 4, .in_order = false}).state(),
            Loader(scattered(), devices, {.seed = 4}).state())
      << "it is no part of the stream's identity";
}

}  // namespace
}  // namespace headrace::test
