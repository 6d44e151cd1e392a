#include "headrace/pipeline/operations/cutout.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"
#include "headrace/tests/pipeline/operations/operation_streams.h"

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

TEST(Cutout, IsOneStreamForAnyThreadsReplicasPrefetchAndResumePoint) {
  expect_operation_streams(augmented_by(cutout(4, {1, 2, 3})));
  expect_operation_streams(augmented_by(to_planes() | cutout(5)));
}

TEST(Cutout, TellsTheFieldAfterIt) { EXPECT_EQ(field_after(cutout(100, {1, 2, 3}), rgb_field()), rgb_field()); }

TEST(Cutout, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal_of_operations(cutout(0), rgb_field()), HasSubstr("not positive"));
  EXPECT_THAT(refusal_of_operations(cutout(3, {1, 2}), rgb_field()), HasSubstr("2 values for 3 channels"));
  EXPECT_THAT(refusal_of_operations(cutout(3, {}), rgb_field()), HasSubstr("0 values"));
  EXPECT_THAT(refusal_of_operations(cutout(3, {256}), rgb_field()), HasSubstr("0 and 255"));
  EXPECT_EQ(refusal_of_operations(cutout(3, {-256}), image_field({8, 8, 3}, DType::kF32)), "");
  EXPECT_THAT(refusal_of_operations(cutout(3, {kNan}), rgb_field()), HasSubstr("finite"));
  EXPECT_THAT(refusal_of_operations(flatten() | cutout(3), rgb_field()), HasSubstr("three axes"));
}

TEST(Cutout, IsRandomAndDescribesItself) {
  EXPECT_TRUE(is_random(cutout(1).list()[0]));
  EXPECT_FALSE(is_batch_level(cutout(3).list()[0]));
  EXPECT_EQ(describe(cutout(8, {1, 2, 3}).list()[0]), "cutout(size=8, fill=[1, 2, 3])");
}

}  // namespace
}  // namespace headrace::test
