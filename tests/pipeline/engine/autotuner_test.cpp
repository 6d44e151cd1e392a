#include "headrace/pipeline/engine/autotuner.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// A machine as the tuner sees it: what limits the rate, and what the clocks show then.
struct Machine {
  double per_thread = 100;    // examples/s a compute thread makes, up to `useful_threads` of them
  int useful_threads = 1000;  // more make it slower by `harm` each
  double harm = 0;
  double per_reader = 1e9;
  double consumer = 1e9;
  double noise = 0;  // of the rate, both ways

  double compute(int threads) const {
    const double over = std::max(0, threads - useful_threads);
    return per_thread * std::min(threads, useful_threads) * (1 - harm * over);
  }
  double rate(int threads, int readers) const {
    const double fetched = readers == 0 ? 1e9 : per_reader * readers;
    return std::min({compute(threads), fetched, consumer});
  }
  TuningWindow window(int threads, int readers, Philox& random) const {
    const double true_rate = rate(threads, readers);
    const double seen = true_rate * (1 + noise * (2 * static_cast<double>(random.uniform()) - 1));
    return {.examples_per_second = seen,
            .stalled = true_rate < consumer ? 1 - true_rate / consumer : 0,
            .compute_waits = 1 - true_rate / compute(threads),
            .readers_busy = readers == 0 ? 0 : true_rate / (per_reader * readers)};
  }
};

int windows_until_settled(Autotuner& tuner, const Machine& machine) {
  Philox random({.seed = 5});
  int windows = 0;
  for (; !tuner.settled() && windows < 1000; ++windows) {
    tuner.observe(machine.window(tuner.threads(), tuner.readers(), random));
  }
  return windows;
}

double best_rate(const Machine& machine, const TuningLimits& limits) {
  double best = 0;
  for (int threads = limits.min_threads; threads <= limits.threads; ++threads) {
    for (int readers = limits.min_readers; readers <= std::max(1, limits.max_readers); ++readers) {
      best = std::max(best, machine.rate(threads, limits.readers == 0 ? 0 : readers));
    }
  }
  return best;
}

// A machine whose device can decode: a row left to it costs the host `left` of one it decodes, and the device so
// much of the consumer's time that all of them take `taken` of it.
struct DecodingMachine {
  double host = 400, consumer = 1000;  // examples/s, if each does all or nothing of it
  double left = 0.15, taken = 0.05;

  TuningWindow window(int share) const {
    const double part = static_cast<double>(share) / Autotuner::kWholeShare;
    const double made = host / (1 - part * (1 - left)), used = consumer * (1 - part * taken);
    const double rate = std::min(made, used);
    return {.examples_per_second = rate, .stalled = 1 - rate / used, .compute_waits = 1 - rate / made};
  }
};

int share_after(const DecodingMachine& machine, Autotuner& tuner, int windows) {
  for (int i = 0; i < windows; ++i) tuner.observe(machine.window(tuner.device_share()));
  return tuner.device_share();
}

constexpr TuningLimits kDecoding{.threads = 4, .min_threads = 4, .decodes = true};

TEST(SharedDecoding, GrowsUntilConsumersDoNotWait) {
  Autotuner tuner(kDecoding);
  const DecodingMachine machine;
  const int share = share_after(machine, tuner, 40);
  EXPECT_GT(share, 0);
  EXPECT_LT(share, Autotuner::kWholeShare) << "the device has other work";
  EXPECT_LT(machine.window(share).stalled, 0.1);
  EXPECT_FALSE(tuner.decoding_reason().empty());
}

TEST(SharedDecoding, StaysOnTheHostThatKeepsUp) {
  Autotuner tuner(kDecoding);
  EXPECT_EQ(share_after({.host = 1200}, tuner, 40), 0);
  EXPECT_TRUE(tuner.settled());
  Autotuner without({.threads = 4, .min_threads = 4});
  EXPECT_EQ(share_after({}, without, 40), 0);
}

TEST(SharedDecoding, TakesItAllWhereThatIsNotEnough) {
  Autotuner tuner(kDecoding);
  EXPECT_EQ(share_after({.host = 20}, tuner, 40), Autotuner::kWholeShare);
}

// A device so slow that it holds its consumer up more than the host does.
TEST(SharedDecoding, GoesBackWhereTheRateFalls) {
  Autotuner tuner(kDecoding);
  const DecodingMachine machine{.host = 800, .taken = 3};
  const int share = share_after(machine, tuner, 40);
  EXPECT_GT(machine.window(share).examples_per_second, 0.9 * machine.window(0).examples_per_second);
}

TEST(SharedDecoding, ShrinksOnceConsumersDoNotWait) {
  Autotuner tuner(kDecoding);
  const int share = share_after({}, tuner, 40);
  EXPECT_LT(share_after({.consumer = 300}, tuner, 80), share);
  EXPECT_GE(share_after({}, tuner, 8), share) << "and grows again at once";
}

constexpr TuningLimits kResident{.threads = 16};
constexpr TuningLimits kWithReaders{.threads = 16, .readers = 4, .max_readers = 32};

class AutotunerTest : public testing::TestWithParam<double> {};

TEST_P(AutotunerTest, ComesWithinFivePercentOfTheBestGridPointInTenSeconds) {
  const std::vector<Machine> machines{
      {.per_thread = 100},                                        // the CPU is short
      {.per_thread = 100, .useful_threads = 8, .harm = 0.03},     // more threads than cores
      {.per_thread = 100, .consumer = 350},                       // the consumer is slow
      {.per_thread = 100, .per_reader = 50},                      // the disk is slow, more readers help
      {.per_thread = 100, .per_reader = 2000, .consumer = 1000},  // few readers will do
  };
  for (std::size_t i = 0; i < machines.size(); ++i) {
    for (const TuningLimits& limits : {kResident, kWithReaders}) {
      Machine machine = machines[i];
      machine.noise = GetParam();
      Autotuner tuner(limits);
      const int windows = windows_until_settled(tuner, machine);
      EXPECT_LE(windows, 10 / 0.15) << "machine " << i;
      EXPECT_GE(machine.rate(tuner.threads(), tuner.readers()), 0.95 * best_rate(machine, limits))
          << "machine " << i << ": " << tuner.threads() << " threads, " << tuner.readers() << " readers";
      EXPECT_FALSE(tuner.threads_reason().empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Noise, AutotunerTest, testing::Values(0.0, 0.005));

TEST(Autotuner, LeavesThreadsIdleThatDoNotHelp) {
  Autotuner tuner(kResident);
  windows_until_settled(tuner, {.per_thread = 100, .consumer = 350});
  EXPECT_LE(tuner.threads(), 5);
  EXPECT_GE(tuner.threads(), 4);
}

// Batches come in lumps, so that the rate of a short window says little: consumers that never wait have enough.
TEST(Autotuner, LeavesThreadsIdleWhereConsumersDoNotWaitHoweverTheRateVaries) {
  Autotuner tuner(kResident);
  windows_until_settled(tuner, {.per_thread = 100, .consumer = 90, .noise = 0.5});
  EXPECT_EQ(tuner.threads(), 1) << tuner.threads_reason();
}

TEST(Autotuner, TriesNothingWhereTheNumberWasAskedFor) {
  Autotuner tuner({.threads = 4, .min_threads = 4, .readers = 3, .min_readers = 3, .max_readers = 3});
  EXPECT_TRUE(tuner.settled());
  EXPECT_EQ(tuner.threads(), 4);
  EXPECT_EQ(tuner.readers(), 3);
  EXPECT_EQ(tuner.threads_reason(), "as asked for");
}

TEST(Autotuner, TakesAllThreadsAgainWhereAConsumerBecomesFaster) {
  Autotuner tuner(kResident);
  Machine machine{.per_thread = 100, .consumer = 350};
  windows_until_settled(tuner, machine);
  ASSERT_LT(tuner.threads(), 16);
  machine.consumer = 1e9;
  Philox random({.seed = 1});
  tuner.observe(machine.window(tuner.threads(), 0, random));
  EXPECT_EQ(tuner.threads(), 16);
  EXPECT_THAT(tuner.threads_reason(), HasSubstr("slower at first"));
}

TEST(Autotuner, NeverGoesBeyondItsLimits) {
  Philox random({.seed = 9});
  for (int threads = 1; threads <= 9; ++threads) {
    for (int max_readers = 1; max_readers <= 9; ++max_readers) {
      Autotuner tuner({.threads = threads, .readers = 1, .max_readers = max_readers});
      for (int i = 0; i < 100; ++i) {
        ASSERT_TRUE(tuner.threads() >= 1 && tuner.threads() <= threads) << tuner.threads();
        ASSERT_TRUE(tuner.readers() >= 1 && tuner.readers() <= max_readers) << tuner.readers();
        tuner.observe({.examples_per_second = random.uniform(),
                       .stalled = random.uniform(),
                       .compute_waits = random.uniform(),
                       .readers_busy = random.uniform()});
      }
    }
  }
}

}  // namespace
}  // namespace headrace::test
