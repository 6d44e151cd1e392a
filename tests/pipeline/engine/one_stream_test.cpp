// The stream of every combination of threads, replicas, prefetch, cache and continuation has the digests of one
// thread without any of them: in a long run all combinations, else every 23rd.
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/long_run.h"

namespace headrace::test {
namespace {

constexpr std::uint64_t kStreamEpochs = 2;
enum class Kept { kNothing, kCold, kWarm, kPart };
using OpensCache = std::function<std::shared_ptr<SampleCache>()>;

class OneStream : public testing::Test {
 protected:
  Dataset dataset(const std::shared_ptr<SampleCache>& cache) const {
    const Dataset decoded = Dataset::from(source_).decode();
    return (cache ? decoded.cache(cache) : decoded)
        .shuffle()
        .map(random_resized_crop({.size = 12}) | flip() | normalize({0.5F}, {0.25F}))
        .batch({.global_batch = 6});
  }

  // Returns what opens the cache: the same one in memory each time, a folder's anew, as another process would.
  OpensCache cache(Kept kept, bool on_disk, int number) {
    if (kept == Kept::kNothing) return [] { return nullptr; };
    const std::uint64_t budget = kept == Kept::kPart ? 15'000 : 0;
    const auto folder = folder_ / (kept == Kept::kWarm ? "warm" : std::to_string(number));
    const OpensCache open = on_disk ? OpensCache([=] { return disk(folder, {.budget_bytes = budget}); })
                                    : [kept = memory(budget)] { return kept; };
    if (kept == Kept::kWarm) digests_of(dataset(open()), 1, {.seed = 4});
    return open;
  }

  std::vector<BatchDigest> run(const OpensCache& cache, int replicas, LoaderOptions options, std::uint64_t taken) {
    DeviceGroup devices = test_devices(replicas);
    std::vector<BatchDigest> all;
    if (taken > 0) {
      Loader first(dataset(cache()), devices, options);
      StreamDigest digest(devices);
      for (std::uint64_t i = 0; i < taken; ++i) all.push_back(*digest.next(first));
      options.start = first.state();
    }
    Loader rest(dataset(cache()), devices, options);
    std::ranges::move(digests_of(rest, devices), std::back_inserter(all));
    return all;
  }

  SourcePtr source_ = fake_jpegs(17);
  TempFolder folder_;
};

TEST_F(OneStream, OfEveryCombination) {
  const auto expected =
      cpu_digests_of(dataset(nullptr), {.seed = 4, .epochs = kStreamEpochs, .threads = 1, .prefetch = 0});
  ASSERT_EQ(expected.size(), 6U);
  const int every = long_or(1, 23);
  int number = 0, resumed_from_disk = 0;
  for (const int threads : {1, 2, 4, 0}) {  // 0: as many as the machine has
    for (const int replicas : {1, 2, 4, 8}) {
      for (int prefetch = 0; prefetch <= 8; ++prefetch) {
        for (const Kept kept : {Kept::kNothing, Kept::kCold, Kept::kWarm, Kept::kPart}) {
          for (const std::uint64_t taken : {0, 1 + prefetch % 5}) {
            const bool on_disk = number / 8 % 2 == 1;  // every other prefetch
            if (++number % every != 0) continue;
            resumed_from_disk += on_disk && kept != Kept::kNothing && taken > 0 ? 1 : 0;
            const LoaderOptions options{
                .seed = 4, .epochs = kStreamEpochs, .threads = threads, .prefetch = prefetch};
            ASSERT_EQ(run(cache(kept, on_disk, number), replicas, options, taken), expected)
                << threads << " threads, " << replicas << " replicas, prefetch " << prefetch << ", cache "
                << static_cast<int>(kept) << (on_disk ? " on disk" : "") << ", continued after " << taken;
          }
        }
      }
    }
  }
  EXPECT_GE(resumed_from_disk, 5);
}

}  // namespace
}  // namespace headrace::test
