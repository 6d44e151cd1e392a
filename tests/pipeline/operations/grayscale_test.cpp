#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"

namespace headrace::test {
namespace {

Image naive_grey(const Image& image, std::int64_t channels) {
  Image grey{.height = image.height, .width = image.width, .channels = channels, .values = {}};
  for (std::size_t i = 0; i < image.values.size(); i += 3) {
    const double luma = 0.299 * image.values[i] + 0.587 * image.values[i + 1] + 0.114 * image.values[i + 2];
    grey.values.insert(grey.values.end(), static_cast<std::size_t>(channels),
                       static_cast<float>(std::floor(luma + 0.5)));
  }
  return grey;
}

TEST(Grayscale, IsTheLumaOfEachPixel) {
  for (const std::int64_t width : {1, 5, 64, 333}) {
    const Image image = random_image(7, width, 3, static_cast<std::uint64_t>(width));
    for (const int channels : {1, 3}) {
      const ChainResult grey = run_chain(grayscale({.channels = channels}), image, DType::kU8);
      EXPECT_EQ(grey.field.shape, (Shape{7, width, channels}));
      expect_near(grey.values, naive_grey(image, channels).values, 1);
    }
  }
}

// Pillow: (19595 R + 38470 G + 7471 B + 2^15) >> 16.
TEST(Grayscale, RoundsAsPillowDoes) {
  const Image image{.height = 4, .width = 1, .channels = 3, .values = {255, 0, 0, 0, 255, 0, 0, 0, 255, 1, 2, 3}};
  EXPECT_EQ(run_chain(grayscale({.channels = 1}), image, DType::kU8).values, (std::vector<float>{76, 150, 29, 2}));
}

TEST(Grayscale, ChangesAsManyImagesAsItSays) {
  int changed = 0;
  constexpr int kRecords = 1000;
  for (std::uint64_t record = 0; record < kRecords; ++record) {
    const Image image = random_image(3, 2, 3, record);
    const auto values = run_chain(grayscale({.probability = 0.2F}), image, DType::kU8, record).values;
    const bool drawn = draws(0, record).uniform() < 0.2F;
    expect_near(values, drawn ? naive_grey(image, 3).values : image.values, drawn ? 1 : 0);
    changed += drawn ? 1 : 0;
  }
  EXPECT_NEAR(changed, 0.2 * kRecords, 50);
}

}  // namespace
}  // namespace headrace::test
