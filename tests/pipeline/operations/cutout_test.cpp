#include "headrace/pipeline/operations/cutout.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"

namespace headrace::test {
namespace {

Image naive_cutout(Image image, std::int64_t size, const std::vector<float>& fill, Philox random) {
  const std::int64_t top =
      static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(image.height))) - size / 2;
  const std::int64_t left =
      static_cast<std::int64_t>(random.below(static_cast<std::uint32_t>(image.width))) - size / 2;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      if (y < top || y >= top + size || x < left || x >= left + size) continue;
      for (std::int64_t c = 0; c < image.channels; ++c)
        image.at(y, x, c) = fill[fill.size() == 1 ? 0 : static_cast<std::size_t>(c)];
    }
  }
  return image;
}

TEST(Cutout, SetsASquareClippedAtTheBorder) {
  for (const std::vector<float>& fill : {std::vector<float>{7}, std::vector<float>{1, 2, 3}}) {
    for (const int size : {1, 4, 5, 40}) {
      for (std::uint64_t record = 0; record < 30; ++record) {
        const Image image = random_image(11, 14, 3, record);
        const Image expected = naive_cutout(image, size, fill, draws(0, record));
        for (const DType type : {DType::kU8, DType::kF32}) {
          expect_near(run_chain(cutout(size, fill), image, type, record).values, expected.values, 0);
        }
        const Image later = naive_cutout(image, size, fill, draws(1, record));
        const auto planes =
            run_chain(to_layout(ImageLayout::kChannelsFirst) | cutout(size, fill), image, DType::kU8, record);
        expect_near(planes.values, naive_planes(later), 0);
        const auto floats =
            run_chain(cast(DType::kF32) | to_layout(ImageLayout::kChannelsFirst) | cutout(size, fill) | flatten(),
                      image, DType::kU8, record);
        expect_near(floats.values, naive_planes(naive_cutout(image, size, fill, draws(2, record))), 0);
      }
    }
  }
}

TEST(Cutout, IsDoneAtItsPlaceOfTheChain) {
  const Image image = random_image(8, 8, 3, 1);
  // A hole made before a mirroring is mirrored with the rest, and one before a normalisation normalised.
  const Image cut = naive_cutout(image, 4, {51}, draws(0));
  expect_near(run_chain(cutout(4, {51}) | flip(1), image, DType::kU8).values, naive_mirror(cut).values, 0);
  Image scaled = cut;
  for (float& value : scaled.values) value /= 255;
  expect_near(run_chain(cutout(4, {51}) | normalize({0}, {1}), image, DType::kU8).values, scaled.values, 1e-6F);
  const Image twice = naive_cutout(naive_mirror(image), 3, {9}, draws(1));
  expect_near(run_chain(flip(1) | cutout(3, {9}) | cutout(2, {8}), image, DType::kU8).values,
              naive_cutout(twice, 2, {8}, draws(2)).values, 0);
}

TEST(Cutout, LiesAnywhere) {
  std::vector<int> hit(9);
  for (std::uint64_t record = 0; record < 900; ++record) {
    const Image image{.height = 3, .width = 3, .channels = 1, .values = std::vector<float>(9)};
    const auto values = run_chain(cutout(1, {1}), image, DType::kU8, record).values;
    for (std::size_t i = 0; i < 9; ++i) hit[i] += values[i] > 0 ? 1 : 0;
  }
  for (const int count : hit) EXPECT_NEAR(count, 100, 40);
}

}  // namespace
}  // namespace headrace::test
