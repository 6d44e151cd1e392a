// What the engine chooses for itself, and the budgets it chooses within: the stream is the same whatever it does.
// Choices and budgets are looked at on CPU replicas, where nothing but the host's work and memory is among them.
#include "headrace/pipeline/engine/engine.h"
#include "headrace/pipeline/engine/lanes.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/fake_clock.h"

namespace headrace::test {
namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t kEndless = std::uint64_t{1} << 30;

Dataset augmented_noise(std::int64_t global = 64) {
  return Dataset::from(noise_images(500, 16, 16))
      .shuffle()
      .map(pad_crop(16, 2) | flip() | normalize({0.5F}, {0.25F}))
      .batch({.global_batch = global});
}

// An engine at the time that the test sets: batches take none to make.
struct TimedEngine {
  TimedEngine(const Dataset& dataset, const LoaderOptions& options)
      : engine(std::make_shared<Engine>(dataset, devices, options, clock)) {
    engine->start();
  }
  ~TimedEngine() { engine->shut_down(); }

  // Takes a batch, and `pause` over it, until nothing is tried any more. Returns for how many.
  int tune(std::chrono::milliseconds pause) {
    int batches = 0;
    for (; !engine->tuning().settled() && batches < 10'000; ++batches) {
      engine->next(0);
      clock.advance(pause);
    }
    return batches;
  }

  FakeClock clock;
  DeviceGroup devices = cpu_replicas(1);
  std::shared_ptr<Engine> engine;
};

TEST(Tuning, LeavesThreadsIdleForASlowConsumerAndSaysWhy) {
  const WorkerAllowance allowance(4);  // before the arena: oneTBB warns of one that is larger
  TimedEngine run(augmented_noise(16), {.epochs = kEndless, .arena = make_own_arena(4, {})});
  EXPECT_EQ(run.engine->tuning().lanes(), 3) << "one less is tried first";
  run.tune(milliseconds(15));
  EXPECT_TRUE(run.engine->tuning().settled());
  EXPECT_EQ(run.engine->tuning().lanes(), 1) << "one makes batches faster than they are taken";
  for (const Choice& choice : run.engine->choices()) {
    EXPECT_FALSE(choice.reason.empty()) << choice.what;
    if (choice.what == "threads") {
      EXPECT_EQ(choice.value, "1");
    }
  }
}

// A window is 150 ms long and has four batches.
TEST(Tuning, MeasuresFewSlowBatchesAsLongAsManyQuickOnes) {
  const WorkerAllowance allowance(2);
  const auto batches = [](milliseconds pause) {
    return TimedEngine(augmented_noise(16), {.epochs = kEndless, .arena = make_own_arena(2, {})}).tune(pause);
  };
  const int slow = batches(milliseconds(60)), quick = batches(milliseconds(5));
  EXPECT_GT(quick, 4 * slow) << "30 batches a window and 4, and those that were ready before each";
}

TEST(Tuning, DoesNotTouchTheStream) {
  const auto source = noise_images(3000, 8, 8);
  const Dataset dataset = Dataset::from(source).shuffle().map(flip()).batch({.global_batch = 10});
  const auto expected = cpu_digests_of(dataset, {.seed = 3, .epochs = 20, .threads = 1});
  for (const int replicas : {1, 2}) {
    EXPECT_EQ(digests_of(dataset, replicas, {.seed = 3, .epochs = 20, .cpu_budget = 4}), expected);
  }
}

TEST(Tuning, KeepsToTheNumberAskedFor) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(augmented_noise(), devices, {.threads = 3});
  EXPECT_TRUE(loader.tuned());
  EXPECT_EQ(loader.threads(), 3);
  EXPECT_EQ(value_of(loader, "threads"), "3");
}

TEST(Budgets, AShortOneMakesThePrefetchShallower) {
  DeviceGroup devices = cpu_replicas(2);
  const Dataset dataset = augmented_noise();
  const auto expected = cpu_digests_of(dataset, {.seed = 1, .epochs = 2, .threads = 2, .prefetch = 8});
  std::uint64_t most = 0;
  {
    Loader loader(dataset, devices, {.seed = 1, .epochs = 2, .threads = 2, .prefetch = 8});
    EXPECT_EQ(loader.stats().slots, 9);
    most = loader.stats().memory_bytes;
  }
  const LoaderOptions tight{.seed = 1, .epochs = 2, .threads = 2, .prefetch = 8, .memory_budget_bytes = most / 2};
  Loader loader(dataset, devices, tight);
  EXPECT_LT(loader.stats().slots, 6);
  EXPECT_GE(loader.stats().slots, 2);
  EXPECT_LE(loader.stats().memory_bytes, most / 2);
  EXPECT_EQ(value_of(loader, "prefetch"), std::to_string(loader.stats().slots - 1));
  EXPECT_EQ(digests_of(loader, devices), expected);
  EXPECT_LE(loader.stats().memory_bytes, most / 2) << "with the threads' working memory";
}

TEST(Budgets, OneThatHoldsNoBatchIsRefusedWithWhatIsNeeded) {
  DeviceGroup devices = cpu_replicas(1);
  const ConfigError error =
      error_of<ConfigError>([&] { Loader loader(augmented_noise(), devices, {.memory_budget_bytes = 1000}); });
  EXPECT_THAT(error.message(), HasSubstr("memory_budget_bytes = 1000 does not hold 2 batches"));
  EXPECT_THAT(error.message(), HasSubstr("bytes are needed"));
}

TEST(Budgets, ARecordThatDoesNotFitFailsItsBatch) {
  DeviceGroup devices = cpu_replicas(1);
  UserMap shrink{.name = "first",
                 .output = {.name = "image", .dtype = DType::kU8, .shape = {1}},
                 .function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
                   out[0] = in[0];
                 }};
  const Dataset dataset = Dataset::from(noise_images(8, 500, 500))
                              .map(flip() | user_map(std::move(shrink)))
                              .batch({.global_batch = 4});
  Loader loader(dataset, devices, {.threads = 1, .memory_budget_bytes = 100'000});
  const Error error = error_of([&] {
    while (loader.next()) {
    }
  });
  EXPECT_THAT(std::string(error.what()), HasSubstr("working memory"));
  EXPECT_THAT(std::string(error.what()), HasSubstr("memory_budget_bytes"));
}

}  // namespace
}  // namespace headrace::test
