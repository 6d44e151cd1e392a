// One flipped bit in what Headrace itself stores, a cache or a record file: never a wrong pixel, whatever the
// pipeline.
#include "headrace/pipeline/convert.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/long_run.h"

namespace headrace::test {
namespace {

constexpr int kFlippedImages = 12;

// Of each pipeline: there are two.
int wanted_flips() { return long_or(5000, 250); }

class Flips : public ::testing::Test {
 protected:
  Flips() {
    for (int i = 0; i < kFlippedImages; ++i) {
      const Picture picture = make_picture(20 + i, 28 - i, 3, static_cast<std::uint64_t>(i));
      const std::string name = (i % 2 == 0 ? "data/a/" : "data/b/") + std::to_string(i);
      folder_.write(name + (i % 3 == 0 ? ".png" : ".jpg"),
                    i % 3 == 0 ? encode_png(picture) : encode_jpeg(picture));
    }
  }

  // A training and an evaluation pipeline, what is random behind the cache.
  static std::array<Dataset, 2> pipelines(const Dataset& decoded) {
    return {
        decoded.shuffle({.seed = 2})
            .map(random_resized_crop({.size = 12}) | flip() | normalize({0.5F, 0.4F, 0.3F}, {0.2F, 0.3F, 0.4F}))
            .batch({.global_batch = 5}),
        decoded.map(resize(16) | center_crop(14)).batch({.global_batch = 4})};
  }

  static std::vector<std::string> stream(const Dataset& dataset) {
    std::vector<std::string> hashes;
    for (const BatchDigest& batch : cpu_digests_of(dataset, {.seed = 4, .epochs = 2, .threads = 1})) {
      hashes.push_back(batch.sha256);
    }
    return hashes;
  }

  // Flips one bit of one of the files, more often where the file is larger.
  static void flip_one(std::span<const std::filesystem::path> files, std::span<const Bytes> sound,
                       Philox& random) {
    std::size_t size = 0;
    for (const Bytes& bytes : sound) size += bytes.size();
    std::size_t at = random.below(static_cast<std::uint32_t>(size)), file = 0;
    while (at >= sound[file].size()) at -= sound[file++].size();
    Bytes bytes = sound[file];
    bytes[at] ^= static_cast<std::byte>(1U << random.below(8));
    write_file_atomically(files[file], bytes, Durability::kLater);
  }

  TempFolder folder_;
};

TEST_F(Flips, OfACacheChangeNoBatch) {
  const Dataset plain = Dataset::from(open_source(folder_ / "data", Split::kTrain)).decode();
  for (std::size_t pipeline = 0; pipeline < 2; ++pipeline) {
    const std::vector<std::string> expected = stream(pipelines(plain)[pipeline]);
    const std::filesystem::path place = folder_ / ("cache" + std::to_string(pipeline));
    const auto cached = [&] { return stream(pipelines(plain.cache(disk(place)))[pipeline]); };
    ASSERT_EQ(cached(), expected);
    std::vector<std::filesystem::path> files;
    std::vector<Bytes> sound;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(place)) {
      if (!entry.is_regular_file()) continue;
      files.push_back(entry.path());
      sound.push_back(read_whole_file(entry.path()));
    }
    ASSERT_EQ(files.size(), 2U) << "a segment and its index";
    const std::filesystem::path stream_folder = files.front().parent_path();
    Philox random({.seed = 31, .record = pipeline});
    for (int flip = 0; flip < wanted_flips(); ++flip) {
      flip_one(files, sound, random);
      ASSERT_EQ(cached(), expected) << "pipeline " << pipeline << ", flip " << flip;
      std::filesystem::remove_all(stream_folder);
      std::filesystem::create_directories(stream_folder);
      for (std::size_t i = 0; i < files.size(); ++i) write_file_atomically(files[i], sound[i], Durability::kLater);
    }
  }
}

TEST_F(Flips, OfARecordFileAreRefusedOrChangeNothing) {
  const std::filesystem::path packed = folder_ / "packed";
  convert_dataset(folder_ / "data", packed);
  const std::array files{packed};
  const std::array sound{read_whole_file(packed)};
  for (std::size_t pipeline = 0; pipeline < 2; ++pipeline) {
    const auto run = [&] {
      const Dataset data = Dataset::from(open_source(packed, Split::kTrain)).decode();
      return stream(pipelines(pipeline == 0 ? data : data.cache(memory()))[pipeline]);
    };
    const std::vector<std::string> expected = run();
    Philox random({.seed = 32, .record = pipeline});
    int refused = 0;
    for (int flip = 0; flip < wanted_flips(); ++flip) {
      flip_one(files, sound, random);
      try {
        ASSERT_EQ(run(), expected) << "pipeline " << pipeline << ", flip " << flip;
      } catch (const Error&) {
        ++refused;
      }
    }
    write_file_atomically(packed, sound.front(), Durability::kLater);
    EXPECT_GT(refused, wanted_flips() * 9 / 10) << "nearly every byte is some record's";
  }
}

}  // namespace
}  // namespace headrace::test
