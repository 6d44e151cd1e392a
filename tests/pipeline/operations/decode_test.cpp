// decode({.apply_orientation = true}): pipelines of images that are stored another way up.
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/oriented.h"

namespace headrace::test {
namespace {

// Each orientation as a baseline JPEG, a progressive one and a PNG.
class OrientedPipelines : public testing::Test {
 protected:
  OrientedPipelines() {
    for (int i = 0; i < 24; ++i) {
      const auto orientation = static_cast<Orientation>(1 + i % 8);
      const Picture picture = make_picture(70 + i, 100, 3, static_cast<std::uint64_t>(i));
      const Bytes plain = i < 16 ? encode_jpeg(picture, {.progressive = i >= 8}) : encode_png(picture);
      const Bytes stored = i < 16 ? jpeg_with_orientation(plain, orientation, i % 2 == 0)
                                  : png_with_orientation(plain, orientation);
      const std::string name = (i < 12 ? "a/" : "b/") + std::to_string(100 + i) + ".jpg";
      stored_.write(name, stored);
      turned_.write(name, turned_png(plain, orientation));
      as_stored_.write(name, plain);
    }
  }

  static Dataset decoded(const TempFolder& folder, bool apply) {
    return Dataset::from(image_folder(folder.path(), Split::kTrain)).decode({.apply_orientation = apply});
  }
  static std::vector<BatchDigest> digests(const Dataset& dataset) {
    return digests_of(dataset.batch({.global_batch = 8}), 1, {.seed = 4, .epochs = 3, .threads = 2});
  }

  TempFolder stored_, turned_, as_stored_;
};

TEST_F(OrientedPipelines, GiveWhatTurnedFilesGive) {
  const auto crops = random_resized_crop({.size = 24});
  EXPECT_EQ(digests(decoded(stored_, true).map(crops)), digests(decoded(turned_, false).map(crops)));
  const auto center = resize(40) | center_crop(32);
  EXPECT_EQ(digests(decoded(stored_, true).map(center)), digests(decoded(turned_, false).map(center)));
  const auto cached = [&](const TempFolder& folder, bool apply) {
    return digests(decoded(folder, apply).cache(memory()).shuffle().map(crops));
  };
  EXPECT_EQ(cached(stored_, true), cached(turned_, false));
}

TEST_F(OrientedPipelines, ByDefaultPixelsComeAsTheyAreStored) {
  const auto crops = random_resized_crop({.size = 24});
  EXPECT_EQ(digests(decoded(stored_, false).map(crops)), digests(decoded(as_stored_, false).map(crops)));
}

TEST_F(OrientedPipelines, ThePlanAndItsFingerprintSaySo) {
  const Dataset off = decoded(stored_, false), on = decoded(stored_, true);
  EXPECT_NE(off.fingerprint(), on.fingerprint());
  EXPECT_THAT(on.explain(), HasSubstr("decode(EXIF orientation applied)"));
  const Dataset sized = Dataset::from(image_folder(stored_.path(), Split::kTrain))
                            .decode({.height = 8, .width = 9, .apply_orientation = true});
  EXPECT_THAT(sized.explain(), HasSubstr("decode(8 x 9, EXIF orientation applied)"));
}

}  // namespace
}  // namespace headrace::test
