// Flipped bits: of data, and of what Headrace itself stores.
#include "headrace/pipeline/convert.h"
#include "headrace/pipeline/decoders/image_decoder.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/images.h"
#include "headrace/tests/support/long_run.h"
#include "headrace/tests/support/plain_images.h"

namespace headrace::test {
namespace {

// One flipped bit in an image file, anywhere: it is refused everywhere, or every pipeline and every cache gives
// the pixels that libjpeg makes of the flipped file. In a PNG, whose bytes all have checksums, it is refused.

constexpr int kFlips = 500;
constexpr int kStrip = 16;                          // side of the window in the midst that is compared
using SeenPixels = std::map<std::uint64_t, Bytes>;  // by record, those that were handed out

Bytes whole_jpeg(int number) {
  const Picture picture = make_picture(48 + number % 5, 56, 3, static_cast<std::uint64_t>(number));
  switch (number % 5) {
    case 0: return encode_jpeg(picture, {.quality = 75, .progressive = true});
    case 1: return encode_jpeg(picture, {.quality = 75, .restart_rows = 1});
    case 2: return encode_jpeg(picture, {.quality = 90, .horizontal = 1, .vertical = 1});
    case 3: return encode_jpeg(picture, {.quality = 60, .standard_tables = false});
    default: return encode_jpeg(picture, {.quality = 75});
  }
}

Bytes whole_png(int number) {
  const Picture picture = make_picture(24 + number % 5, 28, 3, static_cast<std::uint64_t>(number));
  return encode_png(picture, {.bits = number % 3 == 0 ? 16 : 8, .interlaced = number % 2 == 0});
}

// A bit of each file is another one.
std::vector<Bytes> flipped(Bytes (*whole)(int), std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<Bytes> files;
  for (int i = 0; i < kFlips; ++i) {
    const Bytes file = whole(i);
    files.push_back(with_flipped_bit(file, random() % (file.size() * 8)));
  }
  return files;
}

// Our own decoder's pixels of the whole image; nothing where the file is bad.
std::optional<Picture> decode_whole(const Bytes& file) {
  ImageDecoder decoder;
  try {
    const ImageSize size = decoder.read_size(file);
    Picture picture{.height = static_cast<int>(size.height), .width = static_cast<int>(size.width), .samples = {}};
    picture.samples.resize(static_cast<std::size_t>(size.height * size.width * 3));
    decoder.decode(file, picture.samples);
    return picture;
  } catch (const Error&) {
    return std::nullopt;
  }
}

Bytes strip_of(const Picture& picture) {
  Bytes strip;
  const int top = (picture.height - kStrip) / 2, left = (picture.width - kStrip) / 2;
  for (int y = top; y < top + kStrip; ++y) {
    const auto* row = reinterpret_cast<const std::byte*>(picture.samples.data()) + (y * picture.width + left) * 3;
    strip.insert(strip.end(), row, row + kStrip * 3);
  }
  return strip;
}

// Sizes whose middle lies on whole pixels: center_crop() rounds others.
bool has_plain_middle(const Picture& picture) {
  return picture.height >= kStrip && picture.width >= kStrip && picture.height % 2 == 0 && picture.width % 2 == 0;
}

// What every epoch hands out: the same records, with the same pixels where `same_pixels`.
SeenPixels handed_out(const Dataset& dataset, int threads, std::uint64_t epochs, bool same_pixels) {
  DeviceGroup devices = cpu_replicas(1);
  Loader loader(dataset, devices,
                {.seed = 3,
                 .epochs = epochs,
                 .threads = threads,
                 .errors = {.on_error = OnError::kSkip, .max_bad_share = 1}});
  std::vector<SeenPixels> by_epoch(epochs);
  while (const auto batch = loader.next()) {
    batch->ready().wait();
    const TensorView& image = batch->tensor("image");
    const auto* bytes = static_cast<const std::byte*>(image.data);
    const std::size_t row = image.bytes() / static_cast<std::size_t>(image.shape[0]);
    for (const std::uint64_t record : batch->records()) {
      by_epoch[batch->position().epoch][record] = Bytes(bytes, bytes + row);
      bytes += row;
    }
  }
  for (const SeenPixels& later : by_epoch) {
    if (same_pixels) {
      EXPECT_EQ(later, by_epoch[0]);
    }
    EXPECT_EQ(later.size(), by_epoch[0].size());
  }
  return by_epoch[0];
}

std::set<std::uint64_t> records_of(const SeenPixels& pixels) {
  std::set<std::uint64_t> records;
  for (const auto& [record, bytes] : pixels) records.insert(record);
  return records;
}

// Every pipeline and cache against what a decode of each whole file says.
class FlippedBits {
 public:
  explicit FlippedBits(std::vector<Bytes> files) : files_(std::move(files)) {
    for (std::uint64_t i = 0; i < files_.size(); ++i) {
      if (const auto picture = decode_whole(files_[i])) good_.emplace(i, *picture);
    }
  }

  const std::map<std::uint64_t, Picture>& good() const { return good_; }

  void check_everywhere() const {
    std::set<std::uint64_t> expected;
    for (const auto& [record, picture] : good_) expected.insert(record);
    for (const int threads : {1, 3}) {
      check_strips(strips(nullptr), threads, 1, "nothing is kept");
      check_strips(strips(nullptr), threads, 3, "JPEG indexes are kept");
      check_strips(strips(memory()), threads, 2, "memory");
      check_strips(strips(memory(1 << 18)), threads, 2, "a memory too small");
      const auto folder = caches_ / std::to_string(threads);
      check_strips(strips(disk(folder)), threads, 1, "a cold disk");
      check_strips(strips(disk(folder)), threads, 1, "a warm disk");
      const SeenPixels crops = handed_out(random_crops(nullptr), threads, 3, false);
      EXPECT_EQ(records_of(crops), expected) << "random crops";
      EXPECT_EQ(handed_out(random_crops(disk(folder)), threads, 3, false), crops) << "a warm disk";
      EXPECT_EQ(handed_out(random_crops(memory()), threads, 3, false), crops) << "memory";
    }
  }

 private:
  Dataset decoded(const std::shared_ptr<SampleCache>& cache) const {
    const Dataset dataset = Dataset::from(std::make_shared<FakeSource>(files_)).decode();
    return cache == nullptr ? dataset : dataset.cache(cache);
  }
  Dataset strips(const std::shared_ptr<SampleCache>& cache) const {
    return decoded(cache).map(center_crop(kStrip)).batch({.global_batch = 32});
  }
  Dataset random_crops(const std::shared_ptr<SampleCache>& cache) const {
    return decoded(cache).shuffle().map(random_resized_crop({.size = 12}) | flip()).batch({.global_batch = 32});
  }

  void check_strips(const Dataset& dataset, int threads, std::uint64_t epochs, const char* what) const {
    const SeenPixels found = handed_out(dataset, threads, epochs, true);
    EXPECT_EQ(found.size(), good_.size()) << what;
    for (const auto& [record, picture] : good_) {
      const auto strip = found.find(record);
      ASSERT_NE(strip, found.end()) << "record " << record << " is refused: " << what;
      if (has_plain_middle(picture)) {
        EXPECT_EQ(strip->second, strip_of(picture)) << record << ": " << what;
      }
    }
  }

  std::vector<Bytes> files_;
  std::map<std::uint64_t, Picture> good_;  // by record, whole
  TempFolder caches_;
};

TEST(FlippedBits, OfJpegsAreRefusedEverywhereOrGiveLibjpegsPixels) {
  const std::vector<Bytes> files = flipped(whole_jpeg, 15);
  const FlippedBits flips(files);
  EXPECT_GT(flips.good().size(), kFlips / 5U) << "most flips give another image that is as valid";
  EXPECT_LT(flips.good().size(), kFlips * 9 / 10U);
  std::size_t compared = 0;
  for (const auto& [record, picture] : flips.good()) {
    const std::optional<PlainJpeg> plain = decode_plainly(files[record]);
    ASSERT_TRUE(plain) << "libjpeg refuses record " << record;
    EXPECT_EQ(picture.height, plain->picture.height);
    EXPECT_TRUE(picture.samples == plain->picture.samples) << "other pixels of record " << record;
    compared += has_plain_middle(picture) ? 1 : 0;
  }
  EXPECT_GT(compared, kFlips / 10U);
  flips.check_everywhere();
}

TEST(FlippedBits, OfPngsAreRefusedEverywhere) {
  std::vector<Bytes> files = flipped(whole_png, 16);
  files.push_back(whole_png(0));  // an epoch of bad records alone is an error
  const FlippedBits flips(std::move(files));
  ASSERT_EQ(flips.good().size(), 1U);
  EXPECT_EQ(flips.good().begin()->first, kFlips);
  flips.check_everywhere();
}

// One flipped bit in what Headrace itself stores, a cache or a record file: never a wrong pixel, whatever the
// pipeline.

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
