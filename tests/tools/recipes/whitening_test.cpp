#include "headrace/tests/train/training_fixture.h"
#include "headrace/tools/recipes/speed_recipe.h"

namespace headrace::tools {
namespace {

constexpr std::int64_t kPatchSide = 9, kPatchChannels = 3, kPatch = 12;

// Neighbouring pixels and channels are alike.
ImageBlock correlated(std::int64_t count) {
  ImageBlock images{.shape = {count, kPatchSide, kPatchSide, kPatchChannels}, .values = {}};
  Philox random({.seed = 4});
  for (std::int64_t image = 0; image < count; ++image) {
    float level = 0;
    for (std::int64_t i = 0; i < kPatchSide * kPatchSide * kPatchChannels; ++i) {
      level = 0.8F * level + random.uniform() - 0.4F;
      images.values.push_back(level);
    }
  }
  return images;
}

std::vector<double> patch_at(const ImageBlock& images, std::int64_t image, std::int64_t row, std::int64_t column) {
  std::vector<double> patch;
  for (std::int64_t y = row; y < row + 2; ++y) {
    for (std::int64_t x = column; x < column + 2; ++x) {
      for (std::int64_t c = 0; c < kPatchChannels; ++c) {
        patch.push_back(images.values[static_cast<std::size_t>(
            ((image * kPatchSide + y) * kPatchSide + x) * kPatchChannels + c)]);
      }
    }
  }
  return patch;
}

double response(const std::vector<float>& filters, std::int64_t filter, const std::vector<double>& patch) {
  double sum = 0;
  for (std::int64_t k = 0; k < kPatch; ++k) {
    sum += static_cast<double>(filters[static_cast<std::size_t>(filter * kPatch + k)]) *
           patch[static_cast<std::size_t>(k)];
  }
  return sum;
}

// Past one chunk of images, and not a multiple of it.
TEST(Whitening, MakesPatchesUncorrelated) {
  const ImageBlock images = correlated(730);
  DeviceGroup devices = test::test_devices(1, DeviceNeed::kKernels);
  constexpr float kEpsilon = 1e-6F;
  const std::vector<float> filters = whitening_filters(images, devices[0], {.epsilon = kEpsilon});
  ASSERT_EQ(filters.size(), 2U * kPatch * kPatch);
  std::vector<double> moments(kPatch * kPatch);
  const double patches = 730.0 * (kPatchSide - 1) * (kPatchSide - 1);
  for (std::int64_t image = 0; image < 730; ++image) {
    for (std::int64_t row = 0; row + 1 < kPatchSide; ++row) {
      for (std::int64_t column = 0; column + 1 < kPatchSide; ++column) {
        const std::vector<double> patch = patch_at(images, image, row, column);
        std::vector<double> responses;
        for (std::int64_t f = 0; f < kPatch; ++f) responses.push_back(response(filters, f, patch));
        for (std::size_t i = 0; i < moments.size(); ++i) {
          moments[i] += responses[i / kPatch] * responses[i % kPatch] / patches;
        }
      }
    }
  }
  for (std::size_t i = 0; i < moments.size(); ++i) {
    EXPECT_NEAR(moments[i], i / kPatch == i % kPatch ? 1 : 0, 2e-3) << i / kPatch << ", " << i % kPatch;
  }
}

TEST(Whitening, GivesOppositesAndOrdersByVariance) {
  DeviceGroup devices = test::test_devices(1, DeviceNeed::kKernels);
  const std::vector<float> filters = whitening_filters(correlated(40), devices[0]);
  double before = 1e30;
  for (std::size_t f = 0; f < kPatch; ++f) {
    double length = 0, largest = 0;
    for (std::size_t k = 0; k < kPatch; ++k) {
      const float weight = filters[f * kPatch + k];
      EXPECT_EQ(filters[(kPatch + f) * kPatch + k], -weight);
      length += static_cast<double>(weight) * static_cast<double>(weight);
      if (std::abs(static_cast<double>(weight)) > std::abs(largest)) largest = static_cast<double>(weight);
    }
    EXPECT_GT(largest, 0) << f;
    EXPECT_LE(length, before) << "the smallest eigenvalue comes first";
    before = length;
  }
}

// On devices with memory of their own the images are there beforehand, and come from pinned memory.
TEST(Whitening, ComputesWhatItWasGivenAsOftenAsItIsAsked) {
  const ImageBlock images = correlated(730);
  DeviceGroup devices = test::test_devices(1, DeviceNeed::kKernels);
  const std::vector<float> wanted = whitening_filters(images, devices[0]);
  std::optional<ImageBlock> lost = images;
  Whitening whitening(*lost, devices[0]);
  lost.reset();
  EXPECT_EQ(whitening.filters(), wanted);
  EXPECT_EQ(whitening.filters(), wanted);
}

TEST(Whitening, ReadsImagesInOrder) {
  std::vector<float> images;
  for (int i = 0; i < 5 * 4; ++i) images.push_back(static_cast<float>(i));
  const Dataset data = test::labelled({2, 2, 1}, images, {0, 1, 2, 3, 4});
  const ImageBlock block = read_images(data.batch({.global_batch = 3}));
  EXPECT_EQ(block.shape, (Shape{5, 2, 2, 1}));
  EXPECT_EQ(block.values, images);
  EXPECT_THROW(read_images(test::blobs(4).batch({.global_batch = 2})), ConfigError);
}

TEST(Whitening, RefusesWhatHasNoPatches) {
  DeviceGroup devices = test::test_devices(1, DeviceNeed::kKernels);
  EXPECT_THROW(whitening_filters({.shape = {2, 3}, .values = std::vector<float>(6)}, devices[0]), ConfigError);
  EXPECT_THROW(whitening_filters(correlated(2), devices[0], {.kernel = 10}), ConfigError);
  EXPECT_THROW(whitening_filters({.shape = {2, 3, 3, 1}, .values = {}}, devices[0]), ConfigError);
}

}  // namespace
}  // namespace headrace::tools
