#include "headrace/pipeline/operations/cutout.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"

namespace headrace::test {
namespace {

TEST(RandomErasing, DrawsAreasAndRatiosThatLieInTheImage) {
  const RandomErasing options{.probability = 0.6F, .area = {0.1F, 0.4F}, .ratio = {0.5F, 3.3F}};
  int erased = 0, high = 0;
  constexpr int kDrawn = 3000;
  double areas = 0;
  for (std::uint64_t record = 0; record < kDrawn; ++record) {
    Philox random({.seed = 2, .record = record});
    const ImageWindow hole = draw_hole(options, {.height = 100, .width = 160}, random);
    if (hole.height == 0) continue;
    ++erased;
    ASSERT_GE(hole.top, 0);
    ASSERT_GE(hole.left, 0);
    ASSERT_LE(hole.top + hole.height, 100);
    ASSERT_LE(hole.left + hole.width, 160);
    const double share = static_cast<double>(hole.height * hole.width) / 16000;
    const double ratio = static_cast<double>(hole.height) / static_cast<double>(hole.width);
    ASSERT_GT(share, 0.097);
    ASSERT_LT(share, 0.412);
    ASSERT_GT(ratio, 0.485);
    ASSERT_LT(ratio, 3.4);
    areas += share;
    high += ratio > 1 ? 1 : 0;
  }
  EXPECT_NEAR(erased, 0.6 * kDrawn, 90);
  EXPECT_NEAR(areas / erased, 0.25, 0.02);
  EXPECT_GT(high, erased / 2);
}

TEST(RandomErasing, FillsWhatItDrawsInEitherLayout) {
  const RandomErasing options{.probability = 1, .area = {0.02F, 0.5F}, .fill = {5, 6, 7}};
  for (std::uint64_t record = 0; record < 30; ++record) {
    const Image image = random_image(11, 14, 3, record);
    Image expected = image;
    Philox random = draws(0, record);
    const ImageWindow hole = draw_hole(options, {.height = 11, .width = 14}, random);
    ASSERT_GT(hole.height * hole.width, 0);
    for (std::int64_t y = hole.top; y < hole.top + hole.height; ++y) {
      for (std::int64_t x = hole.left; x < hole.left + hole.width; ++x) {
        for (std::int64_t c = 0; c < 3; ++c) expected.at(y, x, c) = static_cast<float>(5 + c);
      }
    }
    for (const DType type : {DType::kU8, DType::kF32}) {
      expect_near(run_chain(random_erasing(options), image, type, record).values, expected.values, 0);
    }
  }
}

TEST(RandomErasing, LeavesAnImageInWhichNothingFits) {
  const Image image = random_image(3, 9, 3, 1);
  const RandomErasing all{.probability = 1, .area = {1, 1}};
  expect_near(run_chain(random_erasing(all), image, DType::kU8).values, image.values, 0);
}

}  // namespace
}  // namespace headrace::test
