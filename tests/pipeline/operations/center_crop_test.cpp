#include "headrace/pipeline/operations/resize.h"
#include "headrace/tests/pipeline/operations/crop_windows.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"

namespace headrace::test {
namespace {

// As Python's round((height - size) / 2) for the sizes' differences 0, 1, 2 ...
TEST(CenterCrop, RoundsAsTorchvisionDoes) {
  const std::vector<std::int64_t> torchvision{0, 0, 1, 2, 2, 2, 3, 4, 4, 4, 5, 6, 6};
  for (std::size_t difference = 0; difference < torchvision.size(); ++difference) {
    const auto extent = static_cast<std::int64_t>(224 + difference);
    const ImageWindow window = center_of({.height = extent, .width = 224}, {.size = 224});
    EXPECT_EQ(window.top, torchvision[difference]) << "of " << extent;
    EXPECT_EQ(window.left, 0);
  }
}

// Of an odd rest the even half is left of what is seen, which in a mirrored image is its right.
TEST(CenterCrop, CentresWhatIsSeen) {
  const CropWindow plain = window_of(chooser(center_crop(2)), 5, 5);
  EXPECT_EQ(plain.top, 2);
  EXPECT_EQ(plain.left, 2);
  const CropWindow mirrored = window_of(chooser(flip(1.0F) | center_crop(2)), 5, 5);
  EXPECT_EQ(mirrored.top, 2);
  EXPECT_EQ(mirrored.left, 1);
  EXPECT_TRUE(mirrored.mirrored);
  EXPECT_FALSE(window_of(chooser(flip(1.0F) | flip(1.0F)), 5, 5).mirrored);
}

TEST(CenterCrop, CropsTheCentreAlsoOfAMirroredImage) {
  const Image image = random_image(11, 10, 3, 3);
  const Image expected = naive_crop(naive_mirror(image), 3, 2, 5, Padding::kZero);
  expect_near(run_chain(flip(1) | center_crop(5), image, DType::kU8).values, expected.values, 0);
  expect_near(run_chain(center_crop(5), image, DType::kU8).values,
              naive_crop(image, 3, 2, 5, Padding::kZero).values, 0);
}

// What a centre crop leaves of an image that was resized whole.
std::vector<float> resized_and_cropped(const Image& image, int shorter, int size) {
  const auto whole = run_chain(resize(shorter), image, DType::kU8);
  const std::int64_t height = whole.field.shape[0], width = whole.field.shape[1], channels = image.channels;
  // Half of what is cut away, of an odd number the half that is even.
  const auto half = [](std::int64_t cut) { return (cut + (cut / 2) % 2) / 2; };
  std::vector<float> cropped;
  for (std::int64_t y = half(height - size); y < half(height - size) + size; ++y) {
    const auto row = whole.values.begin() + (y * width + half(width - size)) * channels;
    cropped.insert(cropped.end(), row, row + size * channels);
  }
  return cropped;
}

TEST(CenterCrop, MakingOnlyWhatItLeavesChangesNothing) {
  for (const std::int64_t channels : {1, 3}) {
    for (const auto& [height, width] : {std::pair{20, 45}, {61, 33}, {97, 98}, {9, 9}}) {
      const Image image = random_image(height, width, channels, 2);
      for (const int shorter : {9, 16, 31}) {
        for (const int size : {1, 8, 9}) {
          const auto actual = run_chain(resize(shorter) | center_crop(size), image, DType::kU8).values;
          EXPECT_EQ(actual, resized_and_cropped(image, shorter, size)) << height << " " << shorter << " " << size;
        }
      }
    }
  }
}

TEST(CenterCrop, DecodingOnlyWhatItLeavesChangesNothing) {
  for (const auto& [height, width] : {std::pair{90, 120}, {200, 64}}) {
    const Bytes encoded = encode_jpeg(make_picture(height, width, 3, 1));
    EXPECT_EQ(run_encoded(resize(36) | center_crop(32), encoded), resized_and_cropped(decoded(encoded), 36, 32));
  }
}

}  // namespace
}  // namespace headrace::test
