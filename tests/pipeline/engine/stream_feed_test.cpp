// Sources without numbers: the same stream as of numbered records, as far as it needs no numbers.
#include "headrace/pipeline/engine/stream_feed.h"
#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/ledger.h"
#include "headrace/tests/pipeline/streams.h"

namespace headrace::test {
namespace {

constexpr std::uint64_t kUncounted = std::numeric_limits<std::uint64_t>::max();

// The numbers 0, 1, ... `count` of them, as numbers() has them; `before` is called with each.
StreamOptions count_up(std::uint64_t count, std::function<void(std::uint64_t)> before = {}) {
  return {.name = "counting", .fields = numbers(1)->info().fields, .open = [count, before](std::uint64_t first) {
            return [next = first, count, before](RecordWriter& record) mutable {
              if (next >= count) return false;
              if (before) before(next);
              record.put(0, static_cast<std::int64_t>(next++));
              return true;
            };
          }};
}
SourcePtr numbered_stream(std::uint64_t count) { return record_stream(count_up(count)); }

using Plan = std::function<Dataset(const Dataset&)>;

// The plan over a stream and over as many numbered records.
void expect_same(const Plan& plan, std::uint64_t count, const LoaderOptions& options = {}) {
  SCOPED_TRACE(testing::Message() << count << " records");
  const Dataset streamed = plan(Dataset::from(numbered_stream(count))),
                numbered = plan(Dataset::from(numbers(count)));
  EXPECT_EQ(digests_of(streamed, 1, options), cpu_digests_of(numbered, options));
}

TEST(Streams, HaveTheBatchesOfNumberedRecords) {
  for (const std::uint64_t count : {0, 1, 9, 10, 11, 40, 103}) {
    for (const bool drop_remainder : {false, true}) {
      const BatchOptions batch{.global_batch = 10, .drop_remainder = drop_remainder};
      expect_same([&](const Dataset& data) { return data.batch(batch); }, count);
      for (const std::uint64_t window : {1, 7, 10, 64, 1000}) {
        expect_same([&](const Dataset& data) { return data.shuffle_window({.size = window}).batch(batch); }, count,
                    {.seed = 3});
      }
    }
  }
}

TEST(Streams, HaveTheStagesThatNeedNoNumbers) {
  const std::vector<Plan> plans{
      [](const Dataset& data) { return data.skip(17).shuffle_window({.size = 8}).batch({.global_batch = 6}); },
      [](const Dataset& data) {
        return data.shuffle_window({.size = 8}).skip(17).take(30).batch({.global_batch = 6});
      },
      [](const Dataset& data) { return data.shard(3, 1).shuffle_window({.size = 5}).batch({.global_batch = 6}); },
      [](const Dataset& data) { return data.without_shard(4, 3).take(20).batch({.global_batch = 5}); },
      [](const Dataset& data) { return data.batch({.global_batch = 6}).skip(2).shuffle_window({.size = 4}); },
      [](const Dataset& data) {
        return data.batch({.global_batch = 6}).shuffle_window({.size = 3}).shard(2, 1).take(4);
      },
      [](const Dataset& data) {
        return data.batch({.global_batch = 5, .drop_remainder = true})
            .without_shard(3, 0)
            .unbatch()
            .batch({.global_batch = 4});
      },
      [](const Dataset& data) {
        return data.batch({.global_batch = 7}).take(9).unbatch().skip(1).batch({.global_batch = 4});
      },
      [](const Dataset& data) {
        return data.shuffle_window({.size = 9}).shuffle_window({.size = 7}).batch({.global_batch = 4});
      },
  };
  for (const Plan& plan : plans) {
    for (const std::uint64_t count : {0, 16, 17, 47, 48, 95}) expect_same(plan, count);
  }
}

TEST(Streams, DoNotDependOnHowTheyAreRun) {
  const Dataset plan =
      Dataset::from(numbered_stream(230)).shuffle_window({.size = 32}).batch({.global_batch = 12});
  const std::vector<BatchDigest> expected = cpu_digests_of(plan, {.threads = 1, .prefetch = 0});
  for (const int replicas : {1, 2, 4, 8}) {
    for (const int threads : {1, 4}) {
      for (const int prefetch : {0, 1, 8}) {
        EXPECT_EQ(digests_of(plan, replicas, {.threads = threads, .prefetch = prefetch}), expected);
      }
    }
  }
}

TEST(Streams, GoOnFromEveryPosition) {
  for (const std::uint64_t window : {1, 16, 50}) {
    const Dataset plan =
        Dataset::from(numbered_stream(107)).shuffle_window({.size = window}).batch({.global_batch = 10});
    const std::vector<BatchDigest> expected = cpu_digests_of(plan, {});
    DeviceGroup devices = test_devices(1);
    Loader whole(plan, devices);
    for (std::size_t step = 0; step <= expected.size(); ++step) {
      const auto rest = digests_of(plan, 2, {.start = LoaderState::parse(whole.state().serialize())});
      EXPECT_EQ(rest, std::vector(expected.begin() + static_cast<std::ptrdiff_t>(step), expected.end())) << step;
      whole.next();
    }
  }
}

TEST(Streams, AreOpenedWhereTheFirstNeededRecordIs) {
  std::vector<std::uint64_t> opened;
  StreamOptions options = count_up(kUncounted);
  options.open = [&opened, open = options.open](std::uint64_t first) {
    opened.push_back(first);
    return open(first);
  };
  const Dataset plan =
      Dataset::from(record_stream(options)).shuffle_window({.size = 16}).batch({.global_batch = 10});
  DeviceGroup devices = test_devices(1);
  const LoaderState start{.fingerprint = Loader(plan, devices).state().fingerprint, .sequence = 5};
  {
    Loader loader(plan, devices, {.start = start});
    EXPECT_EQ(loader.next()->position().step, 5U);
  }
  EXPECT_EQ(opened.back(), 48U) << "of the window of position 50";
}

TEST(Streams, WithoutEndAreServedInBoundedMemory) {
  std::atomic<std::uint64_t> pulled{0};
  const auto source = record_stream(count_up(kUncounted, [&](std::uint64_t number) { pulled = number + 1; }));
  constexpr std::uint64_t kBatch = 8, kWindow = 64;
  DeviceGroup devices = test_devices(1);
  Loader loader(Dataset::from(source).shuffle_window({.size = kWindow}).batch({.global_batch = kBatch}), devices,
                {.prefetch = 3});
  std::uint64_t memory = 0;
  for (std::uint64_t step = 0; step < 3000; ++step) {
    const std::optional<Batch> batch = loader.next();
    ASSERT_TRUE(batch);
    EXPECT_FALSE(batch->position().last_of_epoch);
    const std::uint64_t in_flight = step + static_cast<std::uint64_t>(loader.stats().slots) + 3;
    EXPECT_LE(pulled, (in_flight + 1) * kBatch + 2 * kWindow);
    if (step == 1000) memory = loader.stats().memory_bytes;
  }
  EXPECT_GT(memory, 0U);
  EXPECT_LE(loader.stats().memory_bytes, memory + memory / 4);
}

TEST(Streams, ServePartsOfAWorld) {
  const Dataset plan = Dataset::from(numbered_stream(101)).shuffle_window({.size = 20}).batch({.global_batch = 9});
  Ledger ledger;
  for (const int first : {0, 2}) {
    DeviceGroup devices = test_devices(2);
    Loader loader(plan, devices, {.world = {.total = 4, .first = first}});
    for (bool more = true; more;) {
      for (int r = 0; r < 2; ++r) {
        const auto batch = loader.next(r);
        more = batch.has_value();
        if (batch) ledger.add(*batch, first + r);
      }
    }
  }
  EXPECT_EQ(ledger.find_breach(0, EpochContents::all(101)), std::nullopt);
}

// The labels of what comes until the end or an error, whose message is put into `error`.
std::vector<std::int64_t> values_until_error(Loader& loader, DeviceGroup& devices, std::string& error) {
  std::vector<std::int64_t> values;
  try {
    while (const auto batch = loader.next()) {
      batch->ready().wait();
      const auto rows = download<std::int64_t>(devices[0], batch->tensor("value").data,
                                               static_cast<std::size_t>(batch->examples()));
      values.insert(values.end(), rows.begin(), rows.end());
    }
  } catch (const Error& caught) {
    error = caught.what();
  }
  return values;
}

StreamOptions failing_at(std::uint64_t bad, const std::function<void()>& fail) {
  return count_up(60, [bad, fail](std::uint64_t number) {
    if (number == bad) fail();
  });
}

TEST(Streams, EndInOrderWhereTheyBreak) {
  const auto fail = [] { throw std::runtime_error("the line went dead"); };
  DeviceGroup devices = test_devices(1);
  Loader loader(Dataset::from(record_stream(failing_at(33, fail))).batch({.global_batch = 10}), devices);
  std::string error;
  EXPECT_EQ(values_until_error(loader, devices, error).size(), 30U);
  EXPECT_THAT(error, HasSubstr("counting"));
  EXPECT_THAT(error, HasSubstr("record 33"));
  EXPECT_THAT(error, HasSubstr("the line went dead"));
  EXPECT_THROW(loader.next(), Error) << "and stay broken";
}

TEST(Streams, ThatCannotBeOpenedSaySo) {
  StreamOptions options = count_up(5);
  options.open = [](std::uint64_t) -> std::function<bool(RecordWriter&)> {
    throw std::runtime_error("no such host");
  };
  DeviceGroup devices = test_devices(1);
  Loader loader(Dataset::from(record_stream(options)).batch({.global_batch = 2}), devices);
  std::string error;
  EXPECT_TRUE(values_until_error(loader, devices, error).empty());
  EXPECT_THAT(error, HasSubstr("no such host"));
}

TEST(Streams, GoOnBehindABadRecord) {
  // The function gives it once more: what threw was nobody's record but its own.
  StreamOptions options = count_up(60);
  options.open = [](std::uint64_t first) {
    return [next = first](RecordWriter& record) mutable {
      if (next >= 60) return false;
      const std::uint64_t number = next++;
      if (number == 33) throw DataError(ErrorCode::kDataCorrupt, "garbled", {.source = "counting"});
      record.put(0, static_cast<std::int64_t>(number));
      return true;
    };
  };
  const Dataset plan =
      Dataset::from(record_stream(options)).shuffle_window({.size = 4}).batch({.global_batch = 10});
  DeviceGroup devices = test_devices(1);
  Loader strict(plan, devices);
  std::string error;
  EXPECT_EQ(values_until_error(strict, devices, error).size(), 30U);
  EXPECT_THAT(error, HasSubstr("garbled"));

  error.clear();
  Loader skipping(plan, devices, {.errors = {.on_error = OnError::kSkip}});
  std::vector<std::int64_t> values = values_until_error(skipping, devices, error);
  EXPECT_EQ(error, "");
  EXPECT_EQ(values.size(), 59U);
  EXPECT_EQ(std::ranges::count(values, 33), 0);
  EXPECT_EQ(skipping.stats().bad_records, 1U);
}

TEST(Streams, MayHaveAShareOfBadRecords) {
  const auto every_third = [](std::uint64_t first) {
    return [next = first](RecordWriter& record) mutable {
      if (++next % 3 == 0) throw DataError(ErrorCode::kDataCorrupt, "garbled", {.source = "counting"});
      record.put(0, static_cast<std::int64_t>(next));
      return true;
    };
  };
  StreamOptions options = count_up(0);
  options.open = every_third;
  DeviceGroup devices = test_devices(1);
  Loader loader(Dataset::from(record_stream(options)).batch({.global_batch = 100}), devices,
                {.errors = {.on_error = OnError::kSkip, .max_bad_share = 0.02}});
  std::string error;
  values_until_error(loader, devices, error);
  EXPECT_THAT(error, HasSubstr("201 of the 10,000 examples in a row are bad"));
}

TEST(Streams, ThatStallAreNamedAndStopped) {
  std::promise<void> go_on;
  const std::shared_future<void> open = go_on.get_future().share();
  const auto source = record_stream(failing_at(15, [open] { open.wait(); }));
  DeviceGroup devices = test_devices(1);
  {
    Loader loader(Dataset::from(source).batch({.global_batch = 10}), devices, {.stall_timeout_seconds = 0.2});
    EXPECT_TRUE(loader.next());
    std::string error;
    values_until_error(loader, devices, error);
    EXPECT_THAT(error, HasSubstr("pulling from the stream on record 15"));
    const Stopwatch watch;
    loader.stop();
    EXPECT_LT(watch.seconds(), 1.0);
  }
  go_on.set_value();  // the thread ends without touching what is gone
}

TEST(Streams, KeepTheMemoryBudget) {
  StreamOptions options = count_up(0);
  options.fields = {{.name = "value", .dtype = DType::kU8, .shape = {1 << 20}}};
  options.open = [](std::uint64_t) {
    return [](RecordWriter& record) {
      std::ranges::fill(record.allocate(0, 1 << 20), std::byte{1});
      return true;
    };
  };
  const auto run = [&](std::uint64_t budget) {
    DeviceGroup devices = test_devices(1);
    Loader loader(Dataset::from(record_stream(options)).batch({.global_batch = 4}), devices,
                  {.prefetch = 1, .memory_budget_bytes = budget});
    for (int i = 0; i < 20; ++i) loader.next();
    EXPECT_LE(loader.stats().memory_bytes, budget);
  };
  run(64 << 20);
  const Error error = error_of([&] { run(12 << 20); });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(error.what(), HasSubstr("memory_budget_bytes"));
}

TEST(Streams, RefuseWhatNeedsNumbers) {
  const Dataset data = Dataset::from(numbered_stream(10));
  DeviceGroup devices = test_devices(1);
  const auto open = [&](const Dataset& plan, const LoaderOptions& options = {}) {
    return message_of([&] { Loader(plan.batch({.global_batch = 2}), devices, options); });
  };
  EXPECT_THAT(open(data.shuffle()), HasSubstr("shuffle_window()"));
  EXPECT_THAT(open(data.repeat(2)), HasSubstr("repeat(times=2)"));
  EXPECT_THAT(open(data.cache(memory())), HasSubstr("cache()"));
  EXPECT_THAT(open(data.filter({.name = "all", .keeps = [](const auto&) { return true; }})), HasSubstr("filter"));
  EXPECT_THAT(open(data, {.epochs = 2}), HasSubstr("steps_per_epoch"));
  EXPECT_THAT(open(data, {.errors = {.on_error = OnError::kSubstitute}}), HasSubstr("on_error = skip"));
  EXPECT_THAT(message_of([&] { data.size(); }), HasSubstr("pulled()"));
  EXPECT_THAT(message_of([&] { data.batch({.global_batch = 2}).steps_per_epoch(); }),
              HasSubstr("no known length"));
  EXPECT_THAT(message_of([&] { data.unbatch(); }), HasSubstr("unbatch()"));
  EXPECT_THAT(message_of([&] { data.padded_batch({.global_batch = 2}); }), HasSubstr("padded_batch()"));
  EXPECT_THAT(message_of([&] { concatenate({data, data}); }), HasSubstr("concatenate()"));
  EXPECT_THAT(message_of([&] { zip({data, data}); }), HasSubstr("zip()"));
  std::vector<std::byte> scratch;
  EXPECT_THROW(data.streamed() ? numbered_stream(1)->read(0, scratch) : RecordView{}, DataError);
}

}  // namespace
}  // namespace headrace::test
