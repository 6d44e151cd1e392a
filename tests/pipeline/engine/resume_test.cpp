// States of a loader, and continuing from them.
#include "headrace/pipeline/loader.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(LoaderState, SurvivesBeingWritten) {
  const LoaderState state{.fingerprint = 0x0123456789ABCDEF, .sequence = 98765};
  EXPECT_EQ(state.serialize(), "headrace-loader-2 0123456789abcdef 98765 0 -");
  EXPECT_EQ(LoaderState::parse(state.serialize()), state);
  EXPECT_EQ(LoaderState::parse(state.serialize() + "\n"), state);
}

TEST(LoaderState, SurvivesBeingWrittenWithStagesAndBatchesAhead) {
  const LoaderState state{.fingerprint = 0x0123456789ABCDEF,
                          .sequence = 7,
                          .ahead = {8, 10, 13, 16},
                          .seed = 42,
                          .stages = {0x1A2B, 0xFFFFFFFF}};
  EXPECT_EQ(state.serialize(), "headrace-loader-2 0123456789abcdef 7 42 00001a2bffffffff 521");
  EXPECT_EQ(LoaderState::parse(state.serialize()), state);
  LoaderState full{.fingerprint = 1, .sequence = 0xFFFFFFFFFFFF};
  for (std::uint64_t i = 1; i <= 1024; ++i) full.ahead.push_back(full.sequence + i);
  EXPECT_LE(full.serialize().size(), 4096U);
  EXPECT_EQ(LoaderState::parse(full.serialize()), full);
}

TEST(LoaderState, RefusesBatchesAheadThatCannotBe) {
  for (const std::vector<std::uint64_t>& ahead :
       std::vector<std::vector<std::uint64_t>>{{7}, {6}, {9, 8}, {8, 8}, {7 + 1025}}) {
    const LoaderState state{.fingerprint = 1, .sequence = 7, .ahead = ahead};
    EXPECT_THROW(state.serialize(), ConfigError) << ahead.front();
  }
}

TEST(LoaderState, RefusesAnythingElse) {
  for (const char* text :
       {"", "headrace-loader-1 0123456789abcdef 1", "headrace-loader-2 0123456789abcdef 1",
        "headrace-loader-2 0123456789abcdef 1 0", "headrace-loader-2 0123456789abcdeg 1 0 -",
        "headrace-loader-2 0123456789abcdef 1x 0 -", "headrace-loader-2 0123456789abcdef -1 0 -",
        "headrace-loader-2 0123456789abcdef 1 -1 -", "headrace-loader-2 0123456789abcdef 1 0 ",
        "headrace-loader-2 123 4 0 -", "headrace-loader-2 0123456789abcdef 99999999999999999999999 0 -",
        "headrace-loader-2 0123456789abcdef 1 0 0123456", "headrace-loader-2 0123456789abcdef 1 0 0123456g",
        "headrace-loader-2 0123456789abcdef 1 0 - ", "headrace-loader-2 0123456789abcdef 1 0 - 0",
        "headrace-loader-2 0123456789abcdef 1 0 - 10", "headrace-loader-2 0123456789abcdef 1 0 - A",
        "headrace-loader-2 0123456789abcdef 1 0 - 1 1",
        "headrace-loader-2 0123456789abcdef 18446744073709551615 0 - 1"}) {
    EXPECT_THROW(LoaderState::parse(text), ConfigError) << text;
  }
}

// A loader continued from a state hands out what the uninterrupted one would have, at every step and with
// other replicas, threads and prefetch.

Dataset dataset() {
  return Dataset::from(noise_images(53, 8, 8))
      .shuffle({.seed = 1})
      .repeat(2)
      .map(pad_crop(8, 2) | flip() | normalize({0.5F}, {0.5F}))
      .batch({.global_batch = 10});
}

TEST(Resume, ContinuesAtEveryStepWithAnyReplicasAndThreads) {
  constexpr std::uint64_t kEpochs = 3;
  const auto whole = cpu_digests_of(dataset(), {.seed = 4, .epochs = kEpochs, .threads = 1});
  ASSERT_EQ(whole.size(), 33U);
  const int replicas[] = {1, 2, 4, 8};
  for (std::size_t step = 0; step <= whole.size(); ++step) {
    DeviceGroup devices = test_devices(replicas[step % 4]);
    Loader first(dataset(), devices, {.seed = 4, .epochs = kEpochs, .threads = 2});
    StreamDigest digest(devices);
    for (std::size_t i = 0; i < step; ++i) EXPECT_EQ(digest.next(first), whole[i]);
    const LoaderState state = LoaderState::parse(first.state().serialize());
    EXPECT_EQ(state.sequence, step);

    const int others = replicas[(step + 1) % 4];
    const auto rest = digests_of(dataset(), others,
                                 {.seed = 4,
                                  .epochs = kEpochs,
                                  .threads = 1 + static_cast<int>(step % 3),
                                  .prefetch = static_cast<int>(step % 5),
                                  .start = state});
    EXPECT_EQ(rest, std::vector(whole.begin() + static_cast<std::ptrdiff_t>(step), whole.end()))
        << "from " << step;
  }
}

// JPEGs, decoded whole and by their crop's window, without a cache and with one that is empty, half full or full.
TEST(Resume, ContinuesAtEveryStepOfJpegsWhateverTheirCacheHolds) {
  const auto source = fake_jpegs(23);
  const TempFolder folder;
  const auto stream = [&](const std::shared_ptr<SampleCache>& cache) {
    const Dataset decoded = Dataset::from(source).decode();
    return (cache ? decoded.cache(cache) : decoded)
        .shuffle()
        .map(random_resized_crop({.size = 16}) | flip() | normalize({0.5F}, {0.25F}))
        .batch({.global_batch = 7});
  };
  const auto whole = cpu_digests_of(stream(nullptr), {.seed = 4, .epochs = 2, .threads = 1});
  ASSERT_EQ(whole.size(), 8U);
  const std::shared_ptr<SampleCache> full = memory();
  digests_of(stream(full), 1, {.seed = 4});
  for (std::size_t step = 0; step <= whole.size(); ++step) {
    const auto part = memory(20'000);
    const auto on_disk = disk(folder / std::to_string(step / 3));  // found empty, then full
    for (const std::shared_ptr<SampleCache>& cache :
         std::vector<std::shared_ptr<SampleCache>>{nullptr, memory(), part, full, on_disk}) {
      DeviceGroup devices = test_devices(1 + static_cast<int>(step % 3));
      const LoaderOptions options{.seed = 4, .epochs = 2, .threads = 1 + static_cast<int>(step % 2)};
      Loader first(stream(cache), devices, options);
      StreamDigest digest(devices);
      for (std::size_t i = 0; i < step; ++i) EXPECT_EQ(digest.next(first), whole[i]);
      LoaderOptions rest = options;
      rest.threads = 3;
      rest.prefetch = static_cast<int>(step % 4);
      rest.start = first.state();
      EXPECT_EQ(digests_of(stream(cache), 2, rest),
                std::vector(whole.begin() + static_cast<std::ptrdiff_t>(step), whole.end()))
          << "from " << step;
    }
  }
}

TEST(Resume, CountsOnlyWhatEveryReplicaTook) {
  DeviceGroup devices = test_devices(3);
  Loader loader(dataset(), devices, {.seed = 4, .prefetch = 4});
  EXPECT_EQ(loader.state().sequence, 0U);
  loader.next(0);
  loader.next(0);
  loader.next(1);
  EXPECT_EQ(loader.state().sequence, 0U);
  loader.next(2);
  EXPECT_EQ(loader.state().sequence, 1U);
}

TEST(Resume, SaysWhatDiffersInAnotherStream) {
  DeviceGroup devices = test_devices(1);
  const Dataset numbers = dataset();
  const auto state_of = [&](const Dataset& data, std::uint64_t seed) {
    return Loader(data, devices, {.seed = seed}).state();
  };
  const auto refusal = [&](const Dataset& data, const LoaderState& state) -> std::string {
    try {
      Loader(data, devices, {.seed = 4, .start = state});
    } catch (const ConfigError& error) {
      return error.message();
    }
    return "";
  };
  const std::string begin = "the loader state belongs to another stream: ";
  EXPECT_EQ(refusal(numbers, state_of(numbers, 3)), begin + "its seed was 3, here it is 4");
  const Dataset source = Dataset::from(noise_images(40, 8, 8));
  const Dataset plain = source.batch({.global_batch = 8}),
                shuffled = source.shuffle({.seed = 1}).batch({.global_batch = 8});
  EXPECT_THAT(refusal(plain, state_of(source.batch({.global_batch = 5}), 4)),
              HasSubstr(begin + "it had another stage, or other options, in place of batch(global_batch=8"));
  EXPECT_THAT(refusal(shuffled, state_of(plain, 4)), HasSubstr(begin + "its plan had no shuffle("));
  EXPECT_THAT(refusal(plain, state_of(shuffled, 4)),
              HasSubstr(begin + "its plan had a further stage before batch("));
  EXPECT_EQ(refusal(plain, state_of(plain.take(2), 4)), begin + "its plan had a further stage at its end");
  EXPECT_EQ(
      refusal(plain, state_of(Dataset::from(noise_images(41, 8, 8)).batch({.global_batch = 8}), 3)),
      begin + "its seed was 3, here it is 4; its data, or the results of the version that saved it, were others");
  LoaderState unsaid = state_of(plain, 4);
  unsaid.fingerprint += 1;
  EXPECT_EQ(refusal(plain, unsaid), begin + "its filters failed on other records");
  unsaid.stages.clear();
  EXPECT_EQ(refusal(plain, unsaid), begin + "it does not say which");
}

TEST(Resume, RefusesAnotherStream) {
  DeviceGroup devices = test_devices(1);
  const LoaderState state = Loader(dataset(), devices, {.seed = 4}).state();
  EXPECT_THROW(Loader(dataset(), devices, {.seed = 5, .start = state}), ConfigError);
  EXPECT_THROW(Loader(dataset().prefetch(1), devices, {.seed = 4, .start = LoaderState{}}), ConfigError);
  EXPECT_NO_THROW(Loader(dataset().prefetch(1), devices, {.seed = 4, .threads = 3, .start = state}));
}

}  // namespace
}  // namespace headrace::test
