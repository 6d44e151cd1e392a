// What the input engine does when sources, user functions and consumers misbehave.
#include <sys/wait.h>
#include <unistd.h>

#include "headrace/devices/base/clock.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/on_each.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/gate.h"

namespace headrace::test {
namespace {

std::function<void(std::int64_t)> throw_at(std::set<std::int64_t> records) {
  return [records = std::move(records)](std::int64_t record) {
    if (records.contains(record)) throw std::runtime_error("bad value " + std::to_string(record));
  };
}

TEST(EngineFaults, AUserErrorNamesSourceRecordAndOperationToEveryReplica) {
  for (int threads : {1, 4}) {
    DeviceGroup devices = test_devices(2);
    Loader loader(Dataset::from(numbers(40)).map(on_each(throw_at({13, 17}))).batch({.global_batch = 10}), devices,
                  {.threads = threads});
    for (int r = 0; r < 2; ++r) {
      EXPECT_EQ(loader.next(r)->position().step, 0U) << "batches before the error are handed out";
      try {
        loader.next(r);
        FAIL() << "no error";
      } catch (const DataError& error) {
        EXPECT_EQ(error.location().source, "numbers");
        EXPECT_EQ(error.location().record, 13U) << "the first one of the batch, whatever the threads";
        EXPECT_THAT(error.what(), HasSubstr("map user_map 'probe': bad value 13"));
        EXPECT_THAT(error.what(), HasSubstr(std::string(numbers(40)->describe(13))));
      }
      try {
        loader.next(r);
        FAIL() << "the error surfaces once, the stream has ended";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kCancelled);
        EXPECT_THAT(error.what(), HasSubstr("bad value 13"));
      }
    }
    EXPECT_EQ(loader.state().sequence, 1U);
  }
}

TEST(EngineFaults, AFailedReadNamesRecordAndOffset) {
  const auto source = std::make_shared<FakeSource>(20, [](std::uint64_t index) {
    if (index == 7) throw DataError(ErrorCode::kIo, "broken disk", {.source = "fake", .record = 7, .offset = 512});
    if (index == 15) throw std::runtime_error("lost");
  });
  DeviceGroup devices = test_devices(1);
  const Dataset dataset = Dataset::from(source).batch({.global_batch = 5});
  {
    Loader loader(dataset, devices);
    EXPECT_TRUE(loader.next());
    const DataError error = error_of<DataError>([&] { loader.next(); });
    EXPECT_EQ(error.code(), ErrorCode::kIo);
    EXPECT_EQ(error.location().record, 7U);
    EXPECT_EQ(error.location().offset, 512U);
    EXPECT_STREQ(error.what(), "fake: item/7: source read: broken disk, record 7, byte offset 512");
  }
  Loader loader(
      dataset.prefetch(0), devices,
      {.start = LoaderState{.fingerprint = Loader(dataset, devices).state().fingerprint, .sequence = 3}});
  EXPECT_THROW(loader.next(), DataError);
}

// The next batch, however often the watchdog complains before: a busy machine may leave a thread without a core
// for longer than the short time it is given here. A complaint costs nothing but its time.
std::optional<Batch> patient_next(Loader& loader, int replica = 0) {
  for (const Stopwatch watch; watch.seconds() < 20;) {
    try {
      return loader.next(replica);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kTimeout) throw;
    }
  }
  return std::nullopt;
}

// Asks for batches until the watchdog complains about `culprit`.
void expect_stall_of(Loader& loader, const std::string& culprit) {
  std::string last = "none";
  for (const Stopwatch watch; watch.seconds() < 20;) {
    try {
      loader.next();
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kTimeout) << error.what();
      last = error.what();
      if (last.find(culprit) != std::string::npos) return;
    }
  }
  ADD_FAILURE() << "the last complaint: " << last;
}

TEST(EngineFaults, TheWatchdogNamesAUserFunctionThatBlocksAndTheLoaderStops) {
  const Blocker blocker;
  DeviceGroup devices = test_devices(1);
  {
    Loader loader(Dataset::from(numbers(40)).map(on_each(blocker.at(12), "slow")).batch({.global_batch = 10}),
                  devices, {.threads = 2, .stall_timeout_seconds = 0.2});
    EXPECT_TRUE(patient_next(loader));
    expect_stall_of(loader, "map user_map 'slow' on record 12");
    const Stopwatch watch;
    loader.stop();
    EXPECT_THROW(loader.next(), Error);
    EXPECT_LT(watch.seconds(), 1.0);
  }
  EXPECT_EQ(devices[0].memory_use().device_bytes, 0U);
  blocker.open();  // the thread ends without touching what is gone
}

TEST(EngineFaults, ALoaderIsDestroyedWithinASecondWhileForeignCodeBlocks) {
  const Blocker in_map, in_read;
  const auto source = std::make_shared<FakeSource>(20, in_read.at(3));
  DeviceGroup devices = test_devices(1);
  auto mapping =
      std::make_unique<Loader>(Dataset::from(numbers(20)).map(on_each(in_map.at(3))).batch({.global_batch = 4}),
                               devices, LoaderOptions{.threads = 1});
  auto reading = std::make_unique<Loader>(Dataset::from(source).batch({.global_batch = 4}), devices,
                                          LoaderOptions{.stall_timeout_seconds = 0.1});
  expect_stall_of(*reading, "source read on record 3");
  for (auto* loader : {&mapping, &reading}) {
    const Stopwatch watch;
    loader->reset();
    EXPECT_LT(watch.seconds(), 1.0);
  }
  in_map.open();
  in_read.open();
}

// It reads its record once more when it goes on: a sanitizer would see that the record is gone.
TEST(EngineFaults, ARecordOfAStreamOutlivesTheLoaderWhileForeignCodeReadsIt) {
  const Blocker blocker;
  StreamOptions counting{.name = "counting", .fields = numbers(1)->info().fields};
  counting.open = [](std::uint64_t first) {
    return [next = static_cast<std::int64_t>(first)](RecordWriter& record) mutable {
      record.put(0, next++);
      return next <= 20;
    };
  };
  DeviceGroup devices = test_devices(1);
  {
    Loader loader(Dataset::from(record_stream(counting)).map(on_each(blocker.at(3))).batch({.global_batch = 4}),
                  devices, {.threads = 1, .stall_timeout_seconds = 0.2});
    expect_stall_of(loader, "on record 3");
  }
  blocker.open();
}

// Rows that came back are freed with the loader, though a thread in user code still holds the engine.
TEST(EngineFaults, NoRowsOutliveTheLoaderWhileUserCodeRuns) {
  const Blocker blocker;
  DeviceGroup devices = cpu_replicas(1);
  std::optional<Batch> kept;
  {
    Loader loader(Dataset::from(numbers(80)).map(on_each(blocker.at(78))).batch({.global_batch = 4}), devices,
                  {.threads = 1, .stall_timeout_seconds = 0.2, .owned_batches = true});
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(patient_next(loader));
    kept = patient_next(loader);
    expect_stall_of(loader, "on record 78");
  }
  kept.reset();
  EXPECT_EQ(devices[0].memory_use().device_bytes, 0U);
  blocker.open();
}

TEST(EngineFaults, TheWatchdogNamesAReplicaThatDoesNotTakeItsBatch) {
  DeviceGroup devices = test_devices(2);
  Loader loader(Dataset::from(numbers(40)).batch({.global_batch = 4}), devices,
                {.prefetch = 1, .stall_timeout_seconds = 0.05});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(patient_next(loader));
  expect_stall_of(loader, "replica 1 has not taken batch 0");
  // Nothing is lost: the other one catches up, and both go on.
  EXPECT_TRUE(patient_next(loader, 1));
  EXPECT_EQ(patient_next(loader).value().position().step, 2U);
}

TEST(EngineFaults, TheWatchdogNamesAConsumerThatHoldsEverySlot) {
  DeviceGroup devices = test_devices(1);
  Loader loader(Dataset::from(numbers(40)).batch({.global_batch = 4}), devices,
                {.prefetch = 1, .stall_timeout_seconds = 0.05});
  std::vector<Batch> held;
  for (int i = 0; i < 2; ++i) held.push_back(patient_next(loader).value());
  expect_stall_of(loader, "all 2 slots are held by the consumer: release a batch or raise prefetch");
  held.clear();
  EXPECT_EQ(patient_next(loader).value().position().step, 2U);
}

TEST(EngineFaults, StopWakesAWaitingConsumer) {
  const Blocker blocker;
  const auto source = std::make_shared<FakeSource>(20, blocker.at(0));
  DeviceGroup devices = test_devices(1);
  Loader loader(Dataset::from(source).batch({.global_batch = 4}), devices);
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    loader.stop();
  });
  EXPECT_EQ(error_of([&] { loader.next(); }).code(), ErrorCode::kCancelled);
  stopper.join();
  loader.stop();
  blocker.open();
}

std::size_t entries_of(const char* folder) {
  const auto begin = std::filesystem::directory_iterator(folder);
  return static_cast<std::size_t>(std::distance(begin, std::filesystem::directory_iterator()));
}

// A thread that was joined may be listed for a moment more.
std::size_t threads_that_stay() {
  std::size_t fewest = entries_of("/proc/self/task");
  for (const Stopwatch watch; fewest > 1 && watch.seconds() < 0.5;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    fewest = std::min(fewest, entries_of("/proc/self/task"));
  }
  return fewest;
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  statm >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST(EngineFaults, LeavesNothingBehindAThousandTimesHoweverItIsLeft) {
  DeviceGroup devices = test_devices(2);
  const TempFolder folder;
  const auto source = std::make_shared<FakeSource>(500);
  const Dataset plain = Dataset::from(source);
  const auto run = [&](int how) {
    // Now and then with a cache on disk, half of the time warm.
    const Dataset kept = how % 11 == 0 ? plain.cache(disk(folder / std::to_string(how % 2))) : plain;
    const Dataset dataset = kept.shuffle().batch({.global_batch = 16});
    Loader loader(dataset, devices, {.threads = 2, .reader_threads = 2, .prefetch = how % 4});
    for (int i = 0; i < how % 7; ++i) {
      loader.next(0);
      loader.next(1);
    }
    if (how % 5 == 1) loader.stop();
    if (how % 3 == 1) loader.next(0);  // one replica only
  };
  const auto careless = [&](int how) {
    try {
      run(how);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCancelled);
    }
  };
  for (int i = 0; i < 20; ++i) careless(i);
  const std::size_t threads = threads_that_stay();
  const std::size_t files = entries_of("/proc/self/fd");
  for (int i = 0; i < 300; ++i) careless(i);
  [[maybe_unused]] const std::size_t memory = resident_bytes();
  for (int i = 300; i < 1000; ++i) careless(i);
#ifndef HEADRACE_SANITIZED  // which keep what is freed
  EXPECT_LT(resident_bytes(), memory + (std::size_t{4} << 20)) << "after 700 more";
#endif
  const std::size_t workers = std::thread::hardware_concurrency() + 1;  // oneTBB keeps those that were ever needed
  EXPECT_LE(threads_that_stay(), threads + workers);
  EXPECT_EQ(entries_of("/proc/self/fd"), files);
  EXPECT_EQ(devices[0].memory_use().device_bytes, 0U);
  EXPECT_EQ(devices[1].memory_use().device_bytes, 0U);
}

TEST(EngineFaults, AForkedChildIsToldSo) {
  DeviceGroup devices = test_devices(1);
  auto loader = std::make_unique<Loader>(Dataset::from(numbers(100)).batch({.global_batch = 4}), devices);
  EXPECT_TRUE(loader->next());
  const pid_t child = fork();
  if (child == 0) {
    int status = 1;
    try {
      loader->next();
    } catch (const Error& error) {
      status = error.code() == ErrorCode::kUnsupported ? 0 : 2;
    }
    loader.reset();  // returns although the threads are not there
    _exit(status);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(loader->next()) << "the parent goes on";
}

TEST(EngineFaults, SlowSamplesAreOvertakenWithinTheWindow) {
  // Every 50th record, once begun, ends only after one that lies two batches behind it: in order this would stand.
  std::atomic<std::int64_t> latest{-1};
  std::atomic<int> not_overtaken{0};
  const auto wait_for_later = [&](std::int64_t record) {
    for (std::int64_t seen = latest; seen < record && !latest.compare_exchange_weak(seen, record);) {
    }
    if (record % 50 != 0 || record + 20 >= 400) return;
    const Stopwatch watch;
    while (latest < record + 20 && watch.seconds() < 10) std::this_thread::yield();
    if (latest < record + 20) ++not_overtaken;
  };
  DeviceGroup devices = test_devices(1);
  Loader loader(Dataset::from(numbers(400)).map(on_each(wait_for_later)).batch({.global_batch = 10}), devices,
                {.threads = 4, .prefetch = 8});
  std::uint64_t step = 0;
  while (const auto batch = loader.next()) EXPECT_EQ(batch->position().step, step++);
  EXPECT_EQ(step, 40U);
  EXPECT_EQ(not_overtaken, 0);
}

}  // namespace
}  // namespace headrace::test
