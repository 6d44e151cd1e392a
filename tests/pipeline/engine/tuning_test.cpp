// What the engine chooses for itself, and the budgets it chooses within: the stream is the same whatever it does.
// Choices and budgets are looked at on CPU replicas, where nothing but the host's work and memory is among them.
#include <gmock/gmock.h>

#include <algorithm>
#include <thread>

#include "headrace/devices/base/clock.h"
#include "headrace/devices/base/error.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/undisturbed.h"

namespace headrace {
namespace {

using test::cpu_digests_of;
using test::cpu_replicas;
using test::digests_of;
using test::noise_images;
using test::numbers;
using test::undisturbed;
using test::value_of;
using ::testing::HasSubstr;

constexpr std::uint64_t kEndless = std::uint64_t{1} << 30;

Dataset augmented_noise(std::int64_t global = 64) {
  return Dataset::from(noise_images(500, 16, 16))
      .shuffle()
      .map(pad_crop(16, 2) | flip() | normalize({0.5F}, {0.25F}))
      .batch({.global = global});
}

TEST(Tuning, SettlesAndSaysWhy) {
  undisturbed([](int /*slower*/) {
    DeviceGroup devices = cpu_replicas(1);
    Loader loader(augmented_noise(), devices, {.epochs = kEndless});
    for (const Stopwatch watch; !loader.tuned() && watch.seconds() < 20;) loader.next();
    EXPECT_TRUE(loader.tuned());
    EXPECT_EQ(value_of(loader, "threads"), std::to_string(loader.threads()));
    for (const Choice& choice : loader.choices()) EXPECT_FALSE(choice.reason.empty()) << choice.what;
  });
}

TEST(Tuning, LeavesThreadsIdleForASlowConsumer) {
  undisturbed([](int slower) {
    DeviceGroup devices = cpu_replicas(1);
    Loader loader(augmented_noise(16), devices, {.epochs = kEndless, .cpu_budget = 4});
    for (const Stopwatch watch; !loader.tuned() && watch.seconds() < 20;) {
      const auto batch = loader.next();
      std::this_thread::sleep_for(std::chrono::milliseconds(15 * slower));
    }
    EXPECT_EQ(loader.threads(), 1) << "one makes batches faster than they are taken";
  });
}

TEST(Tuning, DoesNotTouchTheStream) {
  const auto source = noise_images(3000, 8, 8);
  const Dataset dataset = Dataset::from(source).shuffle().map(flip()).batch({.global = 10});
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
    Loader loader(dataset, devices, {.seed = 1, .threads = 2, .prefetch = 8});
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
  try {
    Loader loader(augmented_noise(), devices, {.memory_budget_bytes = 1000});
    FAIL() << "was accepted";
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.message(), HasSubstr("memory_budget_bytes = 1000 does not hold 2 batches"));
    EXPECT_THAT(error.message(), HasSubstr("bytes are needed"));
  }
}

TEST(Budgets, ARecordThatDoesNotFitFailsItsBatch) {
  DeviceGroup devices = cpu_replicas(1);
  UserMap shrink{.name = "first",
                 .output = {.name = "image", .dtype = DType::kU8, .shape = {1}},
                 .function = [](std::span<const std::byte> in, const Shape&, std::span<std::byte> out, Philox&) {
                   out[0] = in[0];
                 }};
  const Dataset dataset =
      Dataset::from(noise_images(8, 500, 500)).map(flip() | user_map(std::move(shrink))).batch({.global = 4});
  Loader loader(dataset, devices, {.threads = 1, .memory_budget_bytes = 100'000});
  try {
    while (loader.next()) {
    }
    FAIL() << "nothing was said";
  } catch (const Error& error) {
    EXPECT_THAT(std::string(error.what()), HasSubstr("working memory"));
    EXPECT_THAT(std::string(error.what()), HasSubstr("memory_budget_bytes"));
  }
}

}  // namespace
}  // namespace headrace
