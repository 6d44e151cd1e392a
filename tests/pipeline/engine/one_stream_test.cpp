// The stream of every combination of threads, replicas, prefetch, cache and continuation has the digests of one
// thread without any of them: in a long run all combinations, else every 23rd.
#include <gtest/gtest.h>

#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/long_run.h"
#include "headrace/tests/support/temp_folder.h"

namespace headrace {
namespace {

constexpr std::uint64_t kStreamEpochs = 2;
enum class Kept { kNothing, kCold, kWarm, kPart };

class OneStream : public testing::Test {
 protected:
  Dataset dataset(const std::shared_ptr<SampleCache>& cache) const {
    const Dataset decoded = Dataset::from(source_).decode();
    return (cache ? decoded.cache(cache) : decoded)
        .shuffle()
        .map(random_resized_crop({.size = 12}) | flip() | normalize({0.5F}, {0.25F}))
        .batch({.global = 6});
  }

  // In memory and on disk in turn.
  std::shared_ptr<SampleCache> cache(Kept kept, int number) {
    const auto place = [&](const std::string& name) -> std::shared_ptr<SampleCache> {
      if (number % 2 == 1) return disk(folder_ / name);
      return memory();
    };
    if (kept == Kept::kNothing) return nullptr;
    if (kept == Kept::kPart) return memory(15'000);
    if (kept == Kept::kCold) return place(std::to_string(number));
    std::shared_ptr<SampleCache> warm = place("warm");
    test::digests_of(dataset(warm), 1, {.seed = 4});
    return warm;
  }

  std::vector<BatchDigest> run(const std::shared_ptr<SampleCache>& cache, int replicas, LoaderOptions options,
                               std::uint64_t taken) {
    DeviceGroup devices = test::test_devices(replicas);
    std::vector<BatchDigest> all;
    if (taken > 0) {
      Loader first(dataset(cache), devices, options);
      StreamDigest digest(devices);
      for (std::uint64_t i = 0; i < taken; ++i) all.push_back(*digest.next(first));
      options.start = first.state();
    }
    Loader rest(dataset(cache), devices, options);
    std::ranges::move(test::digests_of(rest, devices), std::back_inserter(all));
    return all;
  }

  SourcePtr source_ = test::fake_jpegs(17);
  test::TempFolder folder_;
};

TEST_F(OneStream, OfEveryCombination) {
  const auto expected =
      test::cpu_digests_of(dataset(nullptr), {.seed = 4, .epochs = kStreamEpochs, .threads = 1, .prefetch = 0});
  ASSERT_EQ(expected.size(), 6U);
  const int every = test::long_or(1, 23);
  int number = 0;
  for (const int threads : {1, 2, 4, 0}) {  // 0: as many as the machine has
    for (const int replicas : {1, 2, 4, 8}) {
      for (int prefetch = 0; prefetch <= 8; ++prefetch) {
        for (const Kept kept : {Kept::kNothing, Kept::kCold, Kept::kWarm, Kept::kPart}) {
          for (const std::uint64_t taken : {0, 1 + prefetch % 5}) {
            if (++number % every != 0) continue;
            const LoaderOptions options{
                .seed = 4, .epochs = kStreamEpochs, .threads = threads, .prefetch = prefetch};
            ASSERT_EQ(run(cache(kept, number), replicas, options, taken), expected)
                << threads << " threads, " << replicas << " replicas, prefetch " << prefetch << ", cache "
                << static_cast<int>(kept) << ", continued after " << taken;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace headrace
