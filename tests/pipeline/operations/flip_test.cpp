// Flips, in both directions.
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"

namespace headrace::test {
namespace {

TEST(Flip, TwiceIsNothing) {
  const Image image = random_image(5, 21, 3, 3);
  expect_near(run_chain(flip(1) | flip(1), image, DType::kU8).values, image.values, 0);
  expect_near(run_chain(flip(0), image, DType::kU8).values, image.values, 0);
}

TEST(Flip, AlternatingTurnsRoundFromPassToPass) {
  int mirrored_first = 0;
  for (std::uint64_t record = 0; record < 40; ++record) {
    const Image image = random_image(5, 6, 3, record);
    const bool first = draws(0, record).uniform() < 0.5F;
    mirrored_first += first ? 1 : 0;
    for (std::uint64_t pass = 0; pass < 4; ++pass) {
      const Image expected = first != (pass % 2 == 1) ? naive_mirror(image) : image;
      expect_near(run_chain(alternating_flip(), image, DType::kU8, record, pass).values, expected.values, 0);
    }
  }
  EXPECT_GT(mirrored_first, 10);
  EXPECT_LT(mirrored_first, 30);
}

Image upside_down(const Image& image) {
  Image out = image;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      for (std::int64_t c = 0; c < image.channels; ++c) out.at(y, x, c) = image.at(image.height - 1 - y, x, c);
    }
  }
  return out;
}

TEST(VerticalFlip, TurnsUpsideDownWhereItIsDrawn) {
  int turned = 0;
  for (std::uint64_t record = 0; record < 60; ++record) {
    const Image image = random_image(5, 8, 3, record);
    const bool drawn = draws(0, record).uniform() < 0.3F;
    const Image expected = drawn ? upside_down(image) : image;
    for (const DType type : {DType::kU8, DType::kF32}) {
      expect_near(run_chain(vertical_flip(0.3F), image, type, record).values, expected.values, 0);
    }
    turned += drawn ? 1 : 0;
  }
  EXPECT_GT(turned, 8);
  EXPECT_LT(turned, 30);
}

}  // namespace
}  // namespace headrace::test
