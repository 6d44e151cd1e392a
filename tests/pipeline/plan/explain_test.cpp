// Real runs whose culprit is known: what the counters say of them, and the verdict.
#include <nlohmann/json.hpp>

#include "headrace/devices/base/clock.h"
#include "headrace/pipeline/stats.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/discrete_device.h"
#include "headrace/tests/support/long_run.h"

namespace headrace::test {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kWithoutEnd = 1'000'000;

// Of `batches` global batches, without the first few; the consumer is busy for `pause` with each.
LoaderStats stats_after(Loader& loader, int replicas, int batches, milliseconds pause = {}) {
  const auto take = [&] {
    for (int r = 0; r < replicas; ++r) {
      const auto batch = loader.next(r);
      ASSERT_TRUE(batch);
      batch->ready().wait();
      if (r == 0) std::this_thread::sleep_for(pause);
    }
  };
  for (int i = 0; i < 4; ++i) take();
  const LoaderStats before = loader.stats();
  for (int i = 0; i < batches; ++i) take();
  return loader.stats().since(before);
}

const StageStats& stage_of(const LoaderStats& stats, const std::string& name) {
  for (const StageStats& stage : stats.stages) {
    if (stage.name == name) return stage;
  }
  throw std::runtime_error("there is no stage " + name);
}

SourcePtr slow_source(milliseconds pause) {
  return std::make_shared<FakeSource>(64, [pause](std::uint64_t) { std::this_thread::sleep_for(pause); });
}

Operations busy_map(double busy_seconds) {
  UserMap map{.name = "busy", .field = "value", .output = {.dtype = DType::kI64, .shape = {}}};
  map.function = [busy_seconds](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
    const Stopwatch watch;
    while (watch.seconds() < busy_seconds) {
    }
    std::copy(in.begin(), in.end(), out.begin());
  };
  return user_map(std::move(map));
}

Operations sleeping_map(milliseconds pause) {
  UserMap map{.name = "sleeping", .field = "value", .output = {.dtype = DType::kI64, .shape = {}}};
  map.function = [pause](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
    std::this_thread::sleep_for(pause);
    std::copy(in.begin(), in.end(), out.begin());
  };
  return user_map(std::move(map));
}

// The guarantee.
constexpr double kPredictedWithin = 0.1;

void expect_predicted(const Verdict& verdict) {
  EXPECT_NEAR(verdict.ceiling_images_per_second, verdict.measured_images_per_second,
              kPredictedWithin * verdict.measured_images_per_second)
      << verdict.sentence();
}

// Computes a what-if from a run, and measures another run in which it is so.
void expect_comes_true(const std::string& what, const Verdict& without, const Verdict& with) {
  const auto found = std::ranges::find(without.what_ifs, what, &WhatIf::what);
  ASSERT_NE(found, without.what_ifs.end()) << what;
  EXPECT_NEAR(found->images_per_second, with.measured_images_per_second,
              kPredictedWithin * with.measured_images_per_second)
      << without.sentence(*found);
}

TEST(Explain, ASlowSourceIsNamed) {
  undisturbed([](int slower) {
    DeviceGroup devices = cpu_replicas(1);
    Loader loader(Dataset::from(slow_source(milliseconds(5 * slower))).batch({.global_batch = 8}), devices,
                  {.epochs = kWithoutEnd, .threads = 1, .reader_threads = 2});
    const Verdict verdict = judge(stats_after(loader, 1, 20));
    EXPECT_EQ(verdict.bottleneck, "read");
    EXPECT_EQ(verdict.kind, "disk");
    EXPECT_LE(verdict.ceiling_images_per_second, 400.0 / slower);  // two readers, 5 ms a record
    expect_predicted(verdict);
  });
}

// What sleeps needs no core: what more threads reach does not depend on the machine.
TEST(Explain, WhatIfsComeTrueOfMoreReaders) {
  undisturbed([](int slower) {
    DeviceGroup devices = cpu_replicas(1);
    const Dataset dataset = Dataset::from(slow_source(milliseconds(10 * slower))).batch({.global_batch = 8});
    const auto verdict_with = [&](int readers) {
      Loader loader(dataset, devices, {.epochs = kWithoutEnd, .threads = 1, .reader_threads = readers});
      return judge(stats_after(loader, 1, 20));
    };
    expect_comes_true("twice the readers", verdict_with(2), verdict_with(4));
  });
}

TEST(Explain, WhatIfsComeTrueOfMoreThreads) {
  undisturbed([](int slower) {
    DeviceGroup devices = cpu_replicas(1);
    const Dataset dataset =
        Dataset::from(numbers(64)).map(sleeping_map(milliseconds(2 * slower))).batch({.global_batch = 64});
    const auto verdict_with = [&](int threads) {
      Loader loader(dataset, devices, {.epochs = kWithoutEnd, .threads = threads});
      return judge(stats_after(loader, 1, 8));
    };
    expect_comes_true("one more core and a compute thread on it", verdict_with(1), verdict_with(2));
  });
}

TEST(Explain, WhatIfsComeTrueOfAQuickerConsumer) {
  undisturbed([](int slower) {
    DeviceGroup devices = cpu_replicas(1);
    const Dataset dataset = Dataset::from(slow_source(milliseconds(2 * slower))).batch({.global_batch = 8});
    const auto verdict_with = [&](milliseconds pause) {
      Loader loader(dataset, devices, {.epochs = kWithoutEnd, .threads = 1, .reader_threads = 2});
      return judge(stats_after(loader, 1, 25, pause));
    };
    expect_comes_true("a consumer that takes no time", verdict_with(milliseconds(20 * slower)), verdict_with({}));
  });
}

TEST(Explain, ASlowGeneratorIsNamed) {
  undisturbed([](int slower) {
    GeneratorOptions slow{.name = "slow numbers",
                          .fields = {{.name = "value", .dtype = DType::kI64, .shape = {}}},
                          .records = 64,
                          .function = [slower](std::uint64_t index, RecordWriter& record) {
                            std::this_thread::sleep_for(milliseconds(5 * slower));
                            record.put(0, static_cast<std::int64_t>(index));
                          }};
    DeviceGroup devices = cpu_replicas(1);
    Loader loader(Dataset::from(generator(std::move(slow))).batch({.global_batch = 8}), devices,
                  {.epochs = kWithoutEnd, .threads = 1, .reader_threads = 2});
    const Verdict verdict = judge(stats_after(loader, 1, 20));
    EXPECT_EQ(verdict.bottleneck, "read");
    EXPECT_EQ(verdict.kind, "disk");
  });
}

TEST(Explain, ASlowOperationIsNamed) {
  undisturbed([](int slower) {
    DeviceGroup devices = cpu_replicas(1);
    Loader loader(Dataset::from(numbers(64)).map(busy_map(2e-3 * slower)).batch({.global_batch = 8}), devices,
                  {.epochs = kWithoutEnd, .threads = 1});
    const Verdict verdict = judge(stats_after(loader, 1, 60));
    EXPECT_EQ(verdict.bottleneck, "map user_map 'busy'");
    EXPECT_EQ(verdict.kind, "CPU");
    EXPECT_LE(verdict.ceiling_images_per_second,
              1.1 * 500 / slower);  // a block is counted when it ends, in or out of the interval
    expect_predicted(verdict);
    EXPECT_NEAR(verdict.what_ifs.front().images_per_second, 2 * verdict.ceiling_images_per_second,
                kPredictedWithin * verdict.ceiling_images_per_second)
        << verdict.sentence(verdict.what_ifs.front());
  });
}

TEST(Explain, ASlowConsumerIsNamed) {
  undisturbed([](int slower) {
    DeviceGroup devices = cpu_replicas(1);
    Loader loader(Dataset::from(numbers(64)).batch({.global_batch = 8}), devices,
                  {.epochs = kWithoutEnd, .threads = 1});
    const LoaderStats stats = stats_after(loader, 1, 20, milliseconds(10 * slower));
    const Verdict verdict = judge(stats);
    EXPECT_EQ(verdict.bottleneck, "consumer");
    EXPECT_EQ(verdict.kind, "consumer");
    expect_predicted(verdict);
    EXPECT_GT(stats.ready_share, 0.8);
  });
}

// One thread takes the batches of all replicas in turn: it waits in the first one's next() for all of them, which
// is not the work of the others.
TEST(Explain, WaitingForOneReplicaIsNotTheWorkOfAnother) {
  undisturbed([](int slower) {
    DeviceGroup devices = cpu_replicas(4);
    Loader loader(Dataset::from(slow_source(milliseconds(4 * slower))).batch({.global_batch = 8}), devices,
                  {.epochs = kWithoutEnd, .threads = 1, .reader_threads = 1});
    const LoaderStats stats = stats_after(loader, 4, 10);
    EXPECT_EQ(judge(stats).kind, "disk");
    EXPECT_LT(stage_of(stats, "consumer").occupancy(stats.elapsed_ns), 0.3);
  });
}

TEST(Explain, StagesCountWhatWentThroughThem) {
  DeviceGroup devices = cpu_replicas(1);
  const Operations cheap = pad_crop(12, 2) | flip() | normalize({0.5F, 0.4F, 0.3F}, {0.2F, 0.3F, 0.4F});
  Loader loader(
      Dataset::from(noise_images(100, 12, 12)).map(cheap | one_hot(10)).batch({.global_batch = 100}).map(mixup()),
      devices, {.epochs = 20, .threads = 2});
  std::uint64_t examples = 0;
  while (const auto batch = loader.next()) examples += static_cast<std::uint64_t>(batch->examples());
  EXPECT_EQ(examples, 2000U);
  // A piece of work is counted once it is done: the last one perhaps after its batch was handed out.
  LoaderStats stats = loader.stats();
  const Stopwatch watch;
  const auto is_counted = [](const StageStats& stage) {
    return stage.kind != StageKind::kOperate || stage.items >= 2000;
  };
  while (!std::ranges::all_of(stats.stages, is_counted) && watch.seconds() < 5) stats = loader.stats();
  std::uint64_t busy = 0;
  std::vector<std::string> names;
  for (const StageStats& stage : stats.stages) {
    names.push_back(stage.name);
    if (stage.kind != StageKind::kOperate) continue;
    EXPECT_EQ(stage.items, 2000U) << stage.name;
    EXPECT_GT(stage.busy_ns, 0U) << stage.name;
    EXPECT_GT(stage.waits.count(), 0U) << stage.name;
    busy += stage.busy_ns;
  }
  EXPECT_THAT(names, ElementsAre("assemble", HasSubstr("normalize"), HasSubstr("one_hot"), "write rows",
                                 HasSubstr("mixup"), "consumer"));
  EXPECT_EQ(stats.operate_ns, busy);
  EXPECT_LE(busy, 2 * stats.elapsed_ns);
  const StageStats& consumer = stats.stages.back();
  EXPECT_EQ(consumer.waits.count(), 20U);
  EXPECT_GT(consumer.waits.quantile_ns(0.99), 0);
}

TEST(Explain, CopiesAreCounted) {
  DeviceGroup devices = own_memory_devices(1);
  Loader loader(Dataset::from(noise_images(64, 32, 32)).batch({.global_batch = 64}), devices,
                {.epochs = kWithoutEnd, .threads = 1, .trace_spans = 64});
  const LoaderStats stats = stats_after(loader, 1, 20);
  const StageStats& copy = stage_of(stats, "copy");
  EXPECT_GE(copy.items, 16U * 64U);
  EXPECT_GT(copy.busy_ns, 0U);
}

struct TraceSpans {
  std::map<std::string, std::size_t> of_thread = {};
  std::set<std::string> names = {};

  bool has(const std::vector<std::string>& threads) const {
    return std::ranges::all_of(threads, [&](const std::string& thread) { return of_thread.contains(thread); });
  }
};

TraceSpans spans_of(const nlohmann::json& trace) {
  std::map<int, std::string> threads;
  TraceSpans spans;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["ph"] == "M") threads[event["tid"]] = event["args"]["name"];
  }
  for (const nlohmann::json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++spans.of_thread[threads.at(event["tid"])];
    spans.names.insert(event["name"].get<std::string>());
    EXPECT_GE(event["dur"].get<double>(), 0);
  }
  return spans;
}

// A busy machine may leave a thread without work for a while.
TEST(Explain, TheTraceHasEventsOfEveryThread) {
  constexpr int kMaxTries = 50;
  constexpr std::size_t kSpans = 32;
  DeviceGroup devices = cpu_replicas(2);
  Loader loader(Dataset::from(slow_source(milliseconds(1))).map(busy_map(1e-4)).batch({.global_batch = 16}),
                devices, {.epochs = kWithoutEnd, .threads = 2, .reader_threads = 2, .trace_spans = kSpans});
  const std::vector<std::string> threads{"consumer 0", "consumer 1", "compute 0", "compute 1",
                                         "reader 0",   "reader 1",   "assembler"};
  nlohmann::json trace;
  TraceSpans spans;
  for (int i = 0; i < kMaxTries && !spans.has(threads); ++i) {
    stats_after(loader, 2, 20);
    trace = nlohmann::json::parse(loader.trace_json());
    spans = spans_of(trace);
  }
  for (const std::string& thread : threads) {
    EXPECT_GT(spans.of_thread[thread], 0U) << thread;
    EXPECT_LE(spans.of_thread[thread], kSpans) << thread;
  }
  EXPECT_THAT(spans.names, ::testing::IsSupersetOf({"read", "rows", "map user_map 'busy'", "assemble", "next"}));
  EXPECT_GT(trace["otherData"]["dropped"], 0);
}

// Names of steps, too, which the loader made.
TEST(Explain, TheTraceOutlivesItsLoader) {
  const auto trace = std::make_shared<Trace>(256);
  DeviceGroup devices = cpu_replicas(1);
  {
    Loader loader(Dataset::from(numbers(32)).map(busy_map(1e-4)).batch({.global_batch = 16}), devices,
                  {.epochs = kWithoutEnd, .threads = 1, .trace = trace});
    stats_after(loader, 1, 20);
  }
  EXPECT_THAT(trace->to_json(), HasSubstr("\"map user_map 'busy'\""));
}

TEST(Explain, ATraceMustBeAskedFor) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(Dataset::from(numbers(8)).batch({.global_batch = 4}), devices, {});
  EXPECT_THROW(loader.trace_json(), ConfigError);
}

}  // namespace
}  // namespace headrace::test
