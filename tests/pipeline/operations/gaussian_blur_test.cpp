#include "headrace/pipeline/operations/kernels/blur_kernels.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"

namespace headrace::test {
namespace {

std::int64_t reflected(std::int64_t at, std::int64_t extent) {
  return at < 0 ? -at : at >= extent ? 2 * (extent - 1) - at : at;
}

// Both axes at once, in double precision.
Image naive_blur(const Image& image, int size, double sigma) {
  const int around = size / 2;
  double whole = 0;
  const auto weight = [&](int dy, int dx) { return std::exp(-0.5 * (dy * dy + dx * dx) / (sigma * sigma)); };
  for (int dy = -around; dy <= around; ++dy) {
    for (int dx = -around; dx <= around; ++dx) whole += weight(dy, dx);
  }
  Image out = image;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      for (std::int64_t c = 0; c < image.channels; ++c) {
        double sum = 0;
        for (int dy = -around; dy <= around; ++dy) {
          for (int dx = -around; dx <= around; ++dx) {
            sum += weight(dy, dx) / whole *
                   double{image.at(reflected(y + dy, image.height), reflected(x + dx, image.width), c)};
          }
        }
        out.at(y, x, c) = static_cast<float>(std::floor(sum + 0.5));
      }
    }
  }
  return out;
}

TEST(GaussianBlur, EqualsASumOverTheSquare) {
  for (const int size : {1, 3, 5, 23}) {
    for (const float sigma : {0.05F, 0.7F, 2.0F, 40.0F}) {
      for (const auto& [width, channels] : {std::pair<std::int64_t, std::int64_t>{12, 3}, {41, 3}, {13, 1}}) {
        const Image image = random_image(14, width, channels, static_cast<std::uint64_t>(size));
        const Operations chain = gaussian_blur({.kernel_size = size, .sigma = {sigma, sigma}});
        expect_near(run_chain(chain, image, DType::kU8).values, naive_blur(image, size, double{sigma}).values, 1);
      }
    }
  }
}

TEST(GaussianBlur, LeavesAPlaneAsItIs) {
  for (const float level : {0.0F, 1.0F, 128.0F, 255.0F}) {
    Image image = random_image(70, 80, 3, 1);
    for (float& value : image.values) value = level;
    const Operations chain = gaussian_blur({.kernel_size = 127, .sigma = {30, 30}});
    expect_near(run_chain(chain, image, DType::kU8).values, image.values, 0);
  }
}

TEST(GaussianBlur, WeightsAreSymmetricAndWhole) {
  for (const int taps : {1, 3, 31, 127}) {
    for (const double sigma : {0.01, 0.5, 3.0, 100.0}) {
      const BlurWeights weights = gaussian_weights(taps, sigma);
      std::int32_t sum = 0;
      for (int k = 0; k < taps; ++k) {
        sum += weights.values[static_cast<std::size_t>(k)];
        EXPECT_EQ(weights.values[static_cast<std::size_t>(k)],
                  weights.values[static_cast<std::size_t>(taps - 1 - k)]);
      }
      EXPECT_EQ(sum, kWholeWeight);
    }
  }
}

TEST(GaussianBlur, DrawsTheDeviationAfterWhetherToBlur) {
  for (std::uint64_t record = 0; record < 30; ++record) {
    const Image image = random_image(9, 11, 3, record);
    const Operations chain = gaussian_blur({.kernel_size = 7, .sigma = {0.5F, 3}, .probability = 0.5F});
    Philox random = draws(0, record);
    const bool drawn = random.uniform() < 0.5F;
    const double sigma = 0.5 + 2.5 * double{random.uniform()};
    expect_near(run_chain(chain, image, DType::kU8, record).values,
                drawn ? naive_blur(image, 7, sigma).values : image.values, drawn ? 1 : 0);
  }
}

// The bits must not change with compiler, library or processor.
TEST(GaussianBlur, IsTheSameOnEveryMachine) {
  std::uint64_t sum = 0;
  for (std::uint64_t record = 0; record < 30; ++record) {
    const Image image = random_image(29, 33, 3, record);
    for (const float value : run_chain(gaussian_blur({.kernel_size = 9}), image, DType::kU8, record).values) {
      sum = sum * 31 + static_cast<std::uint64_t>(value);
    }
  }
  EXPECT_EQ(sum, 2889970228274022040U);
}

}  // namespace
}  // namespace headrace::test
