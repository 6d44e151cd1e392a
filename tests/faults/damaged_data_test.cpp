// A folder of images, every fifth of them damaged, and two pipelines over it.
#include <nlohmann/json.hpp>

#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/oriented.h"

namespace headrace::test {

inline Bytes image_of(int number) {
  const Picture picture = make_picture(64 + number % 7, 80, 3, static_cast<std::uint64_t>(number));
  switch (number % 5) {
    case 0: return encode_png(picture);
    case 1: return encode_jpeg(picture, {.quality = 75, .progressive = true});
    case 2: return encode_jpeg(picture, {.quality = 75, .restart_rows = 1});
    default: return encode_jpeg(picture, {.quality = 75});
  }
}

// Every fifth is damaged somewhere: cut, flipped, or zeros at its end.
inline Bytes damaged_image(int number) {
  const Bytes image = image_of(number);
  const auto at = static_cast<std::size_t>(number);
  if (number % 5 != number / 5 % 5) return image;
  switch (number / 25 % 4) {
    case 0: return cut_to_percent(image, 40 + at % 60);
    case 1: return with_zero_tail(image, 70 + at % 30);
    case 2: return with_flipped_bit(image, image.size() * 8 * (60 + at % 40) / 100);
    default: return cut_to_percent(image, 99);
  }
}

inline Dataset train(const SourcePtr& source, const std::shared_ptr<SampleCache>& cache = nullptr) {
  Dataset dataset = Dataset::from(source).decode();
  if (cache != nullptr) dataset = dataset.cache(cache);
  return dataset.shuffle({.seed = 5}).map(random_resized_crop({.size = 16}) | flip()).batch({.global_batch = 16});
}

// Only a strip in the midst of each image is wanted.
inline Dataset eval(const SourcePtr& source, const std::shared_ptr<SampleCache>& cache = nullptr) {
  Dataset dataset = Dataset::from(source).decode();
  if (cache != nullptr) dataset = dataset.cache(cache);
  return dataset.map(resize(40) | center_crop(8)).batch({.global_batch = 16});
}

inline LoaderOptions options(OnError on_error, int threads, std::uint64_t epochs) {
  return {.seed = 3, .epochs = epochs, .threads = threads, .errors = {.on_error = on_error, .max_bad_share = 1}};
}

struct DamagedFolder {
  static constexpr int kImages = 300;

  DamagedFolder() {
    for (int i = 0; i < kImages; ++i) {
      folder.write((i < kImages / 2 ? "cat/" : "dog/") + std::to_string(1000 + i) + ".img.jpg", damaged_image(i));
    }
  }
  SourcePtr source() const { return image_folder(folder.path(), Split::kTrain); }

  TempFolder folder;
};

}  // namespace headrace::test

// Damaged images through whole pipelines: the same records are bad with every cache and without, at any number of
// threads, in every epoch, whatever part of an image is wanted and whatever is known of it already.

namespace headrace {
namespace {

using namespace test;
using ::testing::HasSubstr;

using RecordSet = std::set<std::uint64_t>;

// The bad records of each epoch.
std::vector<RecordSet> bad_by_epoch(const Dataset& dataset, const LoaderOptions& with) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(dataset, devices, with);
  std::vector<RecordSet> bad(with.epochs);
  while (const auto batch = loader.next()) {
    for (const BadRecord& one : batch->bad_records()) bad[batch->position().epoch].insert(one.record);
  }
  return bad;
}

class DamagedImages : public testing::Test {
 protected:
  SourcePtr source() const { return damaged_.source(); }

  DamagedFolder damaged_;
  TempFolder caches_;
};

TEST_F(DamagedImages, AreTheSameRecordsWithEveryPipelineCacheThreadCountAndEpoch) {
  const std::vector<RecordSet> expected = bad_by_epoch(train(source()), options(OnError::kSkip, 1, 4));
  ASSERT_GT(expected[0].size(), 40U);
  ASSERT_LT(expected[0].size(), 61U);
  for (const RecordSet& later : expected) EXPECT_EQ(later, expected[0]);
  const auto check = [&](const Dataset& dataset, const LoaderOptions& with, const char* what) {
    for (const RecordSet& bad : bad_by_epoch(dataset, with)) EXPECT_EQ(bad, expected[0]) << what;
  };
  for (const int threads : {1, 2}) {
    check(train(source()), options(OnError::kSkip, threads, 1), "one epoch, nothing is kept");
    check(train(source()), options(OnError::kSkip, threads, 3), "JPEG indexes are kept");
    check(eval(source()), options(OnError::kSkip, threads, 1), "a strip");
    check(eval(source()), options(OnError::kSubstitute, threads, 3), "a strip, several epochs");
    check(train(source(), memory()), options(OnError::kSkip, threads, 3), "a cache in memory");
    check(train(source(), memory(1 << 18)), options(OnError::kSkip, threads, 3), "a cache that is too small");
    const auto folder = caches_ / std::to_string(threads);
    check(train(source(), disk(folder)), options(OnError::kSkip, threads, 2), "a cold cache on disk");
    check(train(source(), disk(folder)), options(OnError::kSubstitute, threads, 2), "a warm cache on disk");
    check(eval(source(), disk(folder)), options(OnError::kSkip, threads, 1), "the same for another pipeline");
  }
}

// An eighth of the budget is for indexes: some have room, the others do not.
TEST_F(DamagedImages, AreTheSameRecordsWithoutRoomForAllIndexes) {
  const RecordSet expected = bad_by_epoch(train(source()), options(OnError::kSkip, 1, 1))[0];
  LoaderOptions with = options(OnError::kSkip, 2, 3);
  with.memory_budget_bytes = 512 << 10;
  for (const RecordSet& bad : bad_by_epoch(train(source()), with)) EXPECT_EQ(bad, expected);
}

class HarmlessDamage : public testing::Test {
 protected:
  HarmlessDamage() {
    for (int i = 0; i < 12; ++i) {
      const Bytes image = encode_jpeg(make_picture(30, 40, 3, static_cast<std::uint64_t>(i)));
      const Bytes junk = to_bytes("junk that is in the way");
      const std::string name = (i < 9 ? "a/" : "b/") + std::to_string(100 + i) + ".jpg";
      whole_.write(name, image);
      Bytes other = i == 3 || i == 7 ? with_inserted(image, 20, junk) : image;
      if (i == 5 || i == 7 || i == 8) other = jpeg_with_orientation(other, Orientation::kRightTop);
      damaged_.write(name, other);
    }
  }
  SourcePtr whole() const { return image_folder(whole_.path(), Split::kTrain); }
  SourcePtr damaged() const { return image_folder(damaged_.path(), Split::kTrain); }

  TempFolder whole_, damaged_, out_;
};

TEST_F(HarmlessDamage, ChangesNoPixelAndIsCountedAndListed) {
  const auto pixels = [](const SourcePtr& source, LoaderStats* stats, const std::filesystem::path& file) {
    DeviceGroup devices = cpu_replicas(1);
    LoaderOptions with = options(OnError::kFail, 2, 3);
    with.errors.quarantine = file;
    Loader loader(eval(source), devices, with);
    const auto digests = digests_of(loader, devices);
    if (stats != nullptr) *stats = loader.stats();
    return digests;
  };
  LoaderStats stats;
  const auto file = out_ / "quarantine.jsonl";
  EXPECT_EQ(pixels(damaged(), &stats, file), pixels(whole(), nullptr, {}));
  EXPECT_EQ(stats.bad_records, 0U);
  EXPECT_EQ(stats.warned_records, 3U * 2);
  EXPECT_EQ(stats.oriented_images, 3U * 3);
  EXPECT_THAT(stats.summary(), HasSubstr("; 6 records used with a warning; 9 images with an EXIF orientation"));
  std::ifstream lines(file);
  RecordSet listed;
  for (std::string line; std::getline(lines, line);) {
    const auto json = nlohmann::json::parse(line);
    EXPECT_TRUE(listed.insert(json["record"].get<std::uint64_t>()).second) << "once each";
    EXPECT_EQ(json["warning"], true);
    EXPECT_EQ(json["action"], "used");
    EXPECT_THAT(json["cause"].get<std::string>(), HasSubstr("23 extraneous bytes before marker"));
    EXPECT_THAT(json["operation"].get<std::string>(), HasSubstr("decode and resize"));
    EXPECT_THAT(json["name"].get<std::string>(), HasSubstr("a/10"));
  }
  EXPECT_EQ(listed, (RecordSet{3, 7}));
}

}  // namespace

// A folder with 20 % damaged files, 8 epochs: one stream for each error policy, with every cache and without.

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
