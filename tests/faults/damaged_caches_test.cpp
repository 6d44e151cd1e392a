// A folder with 20 % damaged files, 8 epochs: one stream for each error policy, with every cache and without.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <optional>

#include "headrace/devices/base/error.h"
#include "headrace/tests/faults/damaged_folder.h"

namespace headrace {
namespace {

using namespace test;

constexpr std::uint64_t kEpochs = 8;

// The batches that were handed out, and the error that ended them. Its text names the stage, which a cache
// changes.
struct SeenStream {
  std::vector<BatchDigest> batches;
  std::optional<std::uint64_t> bad_record;
  std::string error;
};

SeenStream seen_stream_of(const Dataset& dataset, OnError on_error, int threads) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(dataset, devices, options(on_error, threads, kEpochs));
  StreamDigest digest(devices);
  SeenStream stream;
  try {
    while (auto batch = digest.next(loader)) stream.batches.push_back(*batch);
  } catch (const DataError& error) {
    stream.bad_record = error.location().record;
    stream.error = error.what();
  }
  return stream;
}

// The first batches only: what they needed is in the cache, the rest is not.
void fill_partly(const SourcePtr& source, const std::shared_ptr<SampleCache>& cache) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(eval(source, cache), devices, options(OnError::kSkip, 1, 1));
  for (int batch = 0; batch < 5; ++batch) loader.next();
}

struct CacheKind {
  const char* name;
  // Of the source, in this folder; null: none.
  std::shared_ptr<SampleCache> (*open)(const SourcePtr& source, const std::filesystem::path& folder);
};

std::shared_ptr<SampleCache> no_cache(const SourcePtr&, const std::filesystem::path&) { return nullptr; }
std::shared_ptr<SampleCache> whole_memory(const SourcePtr&, const std::filesystem::path&) { return memory(); }
std::shared_ptr<SampleCache> part_memory(const SourcePtr&, const std::filesystem::path&) {
  return memory(1 << 20);
}
std::shared_ptr<SampleCache> cold_disk(const SourcePtr&, const std::filesystem::path& folder) {
  return disk(folder);
}
std::shared_ptr<SampleCache> warm_disk(const SourcePtr& source, const std::filesystem::path& folder) {
  digests_of(eval(source, disk(folder)), 1, options(OnError::kSkip, 1, 1));
  return disk(folder);
}
std::shared_ptr<SampleCache> part_disk(const SourcePtr& source, const std::filesystem::path& folder) {
  fill_partly(source, disk(folder));
  return disk(folder);
}

using Case = std::tuple<OnError, CacheKind, int>;  // threads

class DamagedCaches : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() { damaged_ = new DamagedFolder; }
  static void TearDownTestSuite() {
    delete damaged_;
    damaged_ = nullptr;
    expected_.clear();
  }
  // With one thread and no cache.
  static const SeenStream& expected(OnError on_error) {
    const auto [found, is_new] = expected_.try_emplace(on_error);
    if (is_new) found->second = seen_stream_of(train(damaged_->source()), on_error, 1);
    return found->second;
  }

  static DamagedFolder* damaged_;
  static std::map<OnError, SeenStream> expected_;
  TempFolder caches_;
};

DamagedFolder* DamagedCaches::damaged_ = nullptr;
std::map<OnError, SeenStream> DamagedCaches::expected_;

TEST_P(DamagedCaches, GiveTheStreamOfNone) {
  const auto& [on_error, cache, threads] = GetParam();
  const SourcePtr source = damaged_->source();
  const SeenStream found = seen_stream_of(train(source, cache.open(source, caches_.path())), on_error, threads);
  EXPECT_EQ(found.batches, expected(on_error).batches);
  EXPECT_EQ(found.bad_record, expected(on_error).bad_record) << found.error;
  if (on_error == OnError::kFail) {
    EXPECT_TRUE(found.bad_record);
  } else {
    EXPECT_EQ(found.batches.size(), kEpochs * 19);
    EXPECT_EQ(found.error, "");
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DamagedCaches,
    testing::Combine(testing::Values(OnError::kSkip, OnError::kSubstitute, OnError::kFail),
                     testing::Values(CacheKind{"NoCache", no_cache}, CacheKind{"Memory", whole_memory},
                                     CacheKind{"PartOfMemory", part_memory}, CacheKind{"ColdDisk", cold_disk},
                                     CacheKind{"WarmDisk", warm_disk}, CacheKind{"PartOfDisk", part_disk}),
                     testing::Values(1, 4)),
    [](const testing::TestParamInfo<Case>& one) {
      return std::string(to_string(std::get<0>(one.param))) + std::get<1>(one.param).name +
             std::to_string(std::get<2>(one.param));
    });

}  // namespace
}  // namespace headrace
