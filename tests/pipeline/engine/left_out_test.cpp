// Batches of which records are left out.
#include <deque>

#include "headrace/pipeline/stats.h"
#include "headrace/tests/pipeline/engine/parts.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// Batches of which skipping leaves no example: none is handed out, all replicas agree on where epochs end, and
// nobody waits for what only a consumer could return.

constexpr std::uint64_t kLeftOutRecords = 16, kLeftOutEpochs = 3;
using LeftOutRecords = std::set<std::uint64_t>;

// Batches of two; records below 2 * n are batches below n.
Dataset damaged(const LeftOutRecords& bad) {
  return Dataset::from(std::make_shared<FakeSource>(kLeftOutRecords,
                                                    [bad](std::uint64_t record) {
                                                      if (bad.contains(record))
                                                        throw DataError(ErrorCode::kDataCorrupt, "damaged",
                                                                        {.source = "fake"});
                                                    }))
      .batch({.global_batch = 2});
}

struct Taken {
  std::uint64_t sequence = 0, epoch = 0;
  bool last_of_epoch = false;
  bool operator==(const Taken&) const = default;
};

struct Consumption {
  std::vector<Taken> batches;
  std::vector<std::uint64_t> ends;  // of each epoch, how many batches had come
};

// Takes the replica's batches, epoch by epoch, and keeps the latest `held`.
Consumption consume(Loader& loader, int replica, std::size_t held) {
  Consumption found;
  std::deque<Batch> kept;
  for (std::uint64_t epoch = 0; epoch < kLeftOutEpochs; ++epoch) {
    while (auto batch = loader.next(replica, epoch)) {
      const BatchPosition& at = batch->position();
      EXPECT_GT(at.global_examples, 0) << "batch " << at.sequence;
      EXPECT_EQ(at.epoch, epoch);
      found.batches.push_back({.sequence = at.sequence, .epoch = at.epoch, .last_of_epoch = at.last_of_epoch});
      kept.push_back(*std::move(batch));
      if (kept.size() > held) kept.pop_front();
    }
    found.ends.push_back(found.batches.size());
  }
  EXPECT_FALSE(loader.next(replica)) << "the last epoch is over";
  return found;
}

std::vector<std::uint64_t> sequences_of(const Consumption& found, bool in_order) {
  std::vector<std::uint64_t> all;
  for (const Taken& taken : found.batches) all.push_back(taken.sequence);
  if (!in_order) std::ranges::sort(all);
  return all;
}

class LeftOut : public testing::TestWithParam<std::tuple<LeftOutRecords, int, int, std::size_t, bool>> {};

TEST_P(LeftOut, BatchesAreTheSameForAllReplicas) {
  const auto& [bad, replicas, prefetch, held, in_order] = GetParam();
  std::vector<std::uint64_t> expected, ends;
  for (std::uint64_t epoch = 0; epoch < kLeftOutEpochs; ++epoch) {
    for (std::uint64_t step = 0; step < kLeftOutRecords / 2; ++step) {
      if (!bad.contains(2 * step) || !bad.contains(2 * step + 1))
        expected.push_back(epoch * kLeftOutRecords / 2 + step);
    }
    ends.push_back(expected.size());
  }
  DeviceGroup devices = cpu_replicas(replicas);
  Loader loader(damaged(bad), devices,
                {.epochs = kLeftOutEpochs,
                 .prefetch = prefetch,
                 .in_order = in_order,
                 .stall_timeout_seconds = 20,
                 .errors = {.on_error = OnError::kSkip, .max_bad_share = 1}});
  std::vector<std::future<Consumption>> consumers;
  for (int r = 0; r < replicas; ++r)
    consumers.push_back(std::async(std::launch::async, [&, r, held = held] { return consume(loader, r, held); }));
  std::vector<Consumption> found;
  for (auto& consumer : consumers) found.push_back(consumer.get());
  for (const Consumption& one : found) {
    EXPECT_EQ(one.batches, found.front().batches);
    EXPECT_EQ(one.ends, ends);
    EXPECT_EQ(sequences_of(one, in_order), expected);
  }
  std::vector<std::uint64_t> lasts;
  for (std::size_t i = 0; i < found.front().batches.size(); ++i) {
    if (found.front().batches[i].last_of_epoch) lasts.push_back(i + 1);
  }
  const bool may_look = replicas == 1 && static_cast<std::size_t>(prefetch) > held;
  EXPECT_TRUE(std::ranges::includes(ends, lasts));
  if (may_look) {
    EXPECT_EQ(lasts, ends) << "a slot was free to look where the epoch ends";
  }
}

const LeftOutRecords kBadTail{10, 11, 12, 13, 14, 15}, kBadBegin{0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
    kBadHoles{2, 3, 6, 8, 9, 14, 15}, kAllButOne{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

INSTANTIATE_TEST_SUITE_P(All, LeftOut,
                         testing::Combine(testing::Values(kBadTail, kBadBegin, kBadHoles, kAllButOne),
                                          testing::Values(1, 2, 3), testing::Values(1, 2, 9),
                                          testing::Values(0, 1), testing::Bool()));

// A loop of one thread that keeps a batch of each replica while it asks for the next ones, as `batch = next()`
// does.
TEST(LeftOutBatches, NeedNoOtherReplica) {
  for (const bool in_order : {true, false}) {
    DeviceGroup devices = cpu_replicas(2);
    Loader loader(damaged(kBadTail), devices,
                  {.epochs = kLeftOutEpochs,
                   .prefetch = 2,
                   .in_order = in_order,
                   .stall_timeout_seconds = 20,
                   .errors = {.on_error = OnError::kSkip, .max_bad_share = 1}});
    std::vector<std::optional<Batch>> batches(2);
    std::vector<std::uint64_t> examples(2);
    for (bool more = true; more;) {
      for (int r = 0; r < 2; ++r) {
        auto& batch = batches[static_cast<std::size_t>(r)];
        batch = loader.next(r);
        more = batch.has_value();
        if (more) ++examples[static_cast<std::size_t>(r)];
      }
    }
    EXPECT_EQ(examples, (std::vector<std::uint64_t>{5 * kLeftOutEpochs, 5 * kLeftOutEpochs}));
  }
}

// The batches after the one that ends an epoch count as handed out with it, where they are seen.
TEST(LeftOutBatches, AStateAfterTheLastBatchIsOneOfTheNextEpoch) {
  DeviceGroup devices = cpu_replicas(1);
  LoaderOptions options{.epochs = kLeftOutEpochs, .errors = {.on_error = OnError::kSkip, .max_bad_share = 1}};
  Loader loader(damaged({12, 13, 14, 15}), devices, options);
  while (!loader.next()->position().last_of_epoch) {
  }
  options.start = loader.state();
  EXPECT_EQ(options.start->sequence, kLeftOutRecords / 2);
  Loader resumed(damaged({12, 13, 14, 15}), devices, options);
  EXPECT_EQ(resumed.next(0, 1)->position().epoch, 1U);
  EXPECT_FALSE(resumed.next(0, 0)) << "a batch of a later epoch stays for the next call";
  EXPECT_EQ(resumed.next()->position().step, 1U);
}

// What is concluded from counters made up by hand; real runs are judged in explain_test.cpp.

constexpr std::uint64_t kExamples = 1000;

// A second in which 1000 examples were delivered; costs are nanoseconds of a stage's threads for each of them.
struct Costs {
  std::uint64_t read = 0, decode = 0, operate = 0, copy = 0, consumer = 0;
  int readers = 4, threads = 2, slots = 3;
};

LoaderStats stats_of(const Costs& costs) {
  LoaderStats stats{.elapsed_ns = 1'000'000'000, .examples = kExamples, .slots = costs.slots};
  const auto add = [&](const char* name, StageKind kind, int threads, std::uint64_t cost) {
    stats.stages.push_back(
        {.name = name, .kind = kind, .threads = threads, .items = kExamples, .busy_ns = cost * kExamples});
  };
  add("assemble", StageKind::kAssemble, 1, 10);
  add("read", StageKind::kRead, costs.readers, costs.read);
  add("decode", StageKind::kDecode, costs.threads, costs.decode);
  add("flip(0.5)", StageKind::kOperate, costs.threads, costs.operate);
  if (costs.copy > 0) add("copy", StageKind::kCopy, 1, costs.copy);
  add("consumer", StageKind::kConsume, 1, costs.consumer);
  return stats;
}

double rate_with(const Verdict& verdict, const std::string& what) {
  for (const WhatIf& what_if : verdict.what_ifs) {
    if (what_if.what.find(what) != std::string::npos) return what_if.images_per_second;
  }
  ADD_FAILURE() << "nothing is said about " << what;
  return -1;
}

TEST(Verdict, NamesASlowDisk) {
  const Verdict verdict =
      judge(stats_of({.read = 4'000'000, .decode = 300'000, .operate = 100'000, .consumer = 50'000}));
  EXPECT_EQ(verdict.bottleneck, "read");
  EXPECT_EQ(verdict.kind, "disk");
  EXPECT_NEAR(verdict.ceiling_images_per_second, 1000, 1e-6);
  EXPECT_NEAR(verdict.measured_images_per_second, 1000, 1e-6);
  EXPECT_NEAR(rate_with(verdict, "one more core"), 1000, 1e-6);
  EXPECT_NEAR(rate_with(verdict, "twice the readers"), 2000, 1e-6);
  EXPECT_NEAR(rate_with(verdict, "cache"), 20'000, 1e-6);  // then the consumer: both operate 20,000 a second
}

TEST(Verdict, NamesTheDearestStepOfTheComputeThreads) {
  const Costs costs{.read = 100'000, .decode = 1'500'000, .operate = 500'000, .consumer = 50'000};
  const Verdict verdict = judge(stats_of(costs));
  EXPECT_EQ(verdict.bottleneck, "decode");
  EXPECT_EQ(verdict.kind, "CPU");
  EXPECT_NEAR(verdict.ceiling_images_per_second, 1000, 1e-6);  // 2 threads, 2 ms an example
  EXPECT_NEAR(rate_with(verdict, "one more core"), 1500, 1e-6);
  EXPECT_NEAR(rate_with(verdict, "twice the cores"), 2000, 1e-6);
  EXPECT_NEAR(rate_with(verdict, "cache"), 4000, 1e-6);
  EXPECT_EQ(verdict.what_ifs.at(3).bottleneck, "flip(0.5)");  // nothing is decoded any more
  EXPECT_NEAR(rate_with(verdict, "consumer"), 1000, 1e-6);

  LoaderStats photographs = stats_of(costs);  // 2 MB of pixels each take .5 ms to read, as long as operating does
  photographs.stages.at(2).decoded_bytes = 2'000'000 * kExamples;
  EXPECT_NEAR(rate_with(judge(photographs), "cache"), 2000, 1e-6);

  Costs operating = costs;
  std::swap(operating.decode, operating.operate);
  EXPECT_EQ(judge(stats_of(operating)).bottleneck, "flip(0.5)");
}

TEST(Verdict, NamesTheConsumerWhereTheInputKeepsUp) {
  const Verdict verdict =
      judge(stats_of({.read = 100'000, .decode = 100'000, .operate = 100'000, .consumer = 1'000'000}));
  EXPECT_EQ(verdict.bottleneck, "consumer");
  EXPECT_EQ(verdict.kind, "consumer");
  EXPECT_NEAR(verdict.ceiling_images_per_second, 1000, 1e-6);
  EXPECT_NEAR(rate_with(verdict, "one more core"), 1000, 1e-6);
  EXPECT_NEAR(rate_with(verdict, "a consumer that takes no time"), 10'000, 1e-6);
}

// It waits for its copies, which look as if it was busy.
TEST(Verdict, BlamesTheCopyAndNotTheConsumerThatWaitsForIt) {
  const Verdict verdict = judge(stats_of({.read = 100'000, .copy = 1'000'000, .consumer = 1'020'000}));
  EXPECT_EQ(verdict.bottleneck, "copy");
  EXPECT_EQ(verdict.kind, "copy");
}

TEST(Verdict, ASingleSlotMakesEngineAndConsumerTakeTurns) {
  const Costs costs{.decode = 2'000'000, .consumer = 1'000'000, .slots = 1};
  LoaderStats stats = stats_of(costs);
  stats.elapsed_ns = 4'000'000'000;
  EXPECT_NEAR(judge(stats).ceiling_images_per_second, 500, 1e-6);
  stats.elapsed_ns = 1'000'000'000;
  EXPECT_NEAR(judge(stats).ceiling_images_per_second, 1000, 1e-6) << "as was measured";
}

TEST(Verdict, SaysHowMuchFasterInWordsThatMeanSomething) {
  const Verdict verdict{.ceiling_images_per_second = 100};
  const auto of = [&](double rate) {
    return verdict.sentence({.what = "x", .images_per_second = rate, .bottleneck = "flip"});
  };
  EXPECT_EQ(of(100), "with x: 100 images/s (no faster), bound by flip");
  EXPECT_EQ(of(150), "with x: 150 images/s (+50 %), bound by flip");
  EXPECT_EQ(of(560), "with x: 560 images/s (x 5.6), bound by flip");
  EXPECT_EQ(of(22'300), "with x: 22300 images/s (more than x 100: it is no longer the limit), bound by flip");
}

TEST(Verdict, CountsWhatACacheHitDoesNotCost) {
  LoaderStats stats = stats_of({.read = 400'000, .decode = 1'500'000, .operate = 100'000});
  for (StageStats& stage : stats.stages) {
    if (stage.kind != StageKind::kRead && stage.kind != StageKind::kDecode) continue;
    stage.items /= 10;  // nine in ten were hits
    stage.busy_ns /= 10;
  }
  EXPECT_NEAR(judge(stats).ceiling_images_per_second, 2e9 / 250'000, 1e-6);
}

TEST(Verdict, SpeaksInSentencesWithNumbers) {
  const Verdict verdict = judge(stats_of({.read = 4'000'000, .decode = 1'000'000, .consumer = 50'000}));
  EXPECT_EQ(verdict.sentence(), "input-bound at read: disk; ceiling 1000 images/s, measured 1000");
  ASSERT_FALSE(verdict.what_ifs.empty());
  for (const WhatIf& what_if : verdict.what_ifs) {
    EXPECT_THAT(verdict.sentence(what_if), HasSubstr(" images/s (")) << what_if.what;
  }
  EXPECT_EQ(verdict.sentence(verdict.what_ifs[2]),
            "with twice the readers: 2000 images/s (+100 %), bound by read");
}

TEST(Verdict, ComparesWhatWasTriedWithWhatItWasTriedBeside) {
  const Verdict verdict = judge(stats_of({.read = 4'000'000, .decode = 1'000'000, .consumer = 50'000}));
  EXPECT_EQ(
      verdict.sentence({.what = "a cache", .images_per_second = 4500, .bottleneck = "flip", .instead_of = 900}),
      "with a cache: 4500 images/s (5.0 times the 900 without it, in turn), bound by flip");
}

TEST(Verdict, SaysWhereNoStageIsTheCulprit) {
  const Verdict verdict = judge(stats_of({.read = 100'000, .decode = 500'000, .consumer = 100'000}));
  EXPECT_NEAR(verdict.ceiling_images_per_second, 4000, 1e-6);
  EXPECT_THAT(verdict.sentence(), HasSubstr("measured 1000: no stage is at work for more than 25 % of the time"));
}

TEST(Verdict, SaysNothingWhereNothingWasDelivered) {
  const Verdict verdict = judge(LoaderStats{});
  EXPECT_EQ(verdict.bottleneck, "");
  EXPECT_TRUE(verdict.what_ifs.empty());
  EXPECT_THAT(verdict.sentence(), HasSubstr("nothing was delivered"));
}

// Loaders that make small batches many at a time: the stream is the same, and nobody waits for a burst to be full.

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
