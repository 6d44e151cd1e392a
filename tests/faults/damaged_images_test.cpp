// Damaged images through whole pipelines: the same records are bad with every cache and without, at any number of
// threads, in every epoch, whatever part of an image is wanted and whatever is known of it already.
#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "headrace/tests/faults/damaged_folder.h"
#include "headrace/tests/support/oriented.h"

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
}  // namespace headrace
