#include "headrace/pipeline/operations/kernels/affine_map.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"

namespace headrace::test {
namespace {

Image naive_affine(const Image& image, const AffineMap& source, float fill) {
  Image out = image;
  for (std::int64_t y = 0; y < image.height; ++y) {
    for (std::int64_t x = 0; x < image.width; ++x) {
      const Point from = source({.x = static_cast<double>(x) + 0.5, .y = static_cast<double>(y) + 0.5});
      const auto row = static_cast<std::int64_t>(std::floor(from.y));
      const auto column = static_cast<std::int64_t>(std::floor(from.x));
      const bool inside = row >= 0 && row < image.height && column >= 0 && column < image.width;
      for (std::int64_t c = 0; c < image.channels; ++c) out.at(y, x, c) = inside ? image.at(row, column, c) : fill;
    }
  }
  return out;
}

// Draws in the order that the operation states.
TEST(RandomAffine, MovesPixelsByWhatItDraws) {
  const RandomAffine options{.degrees = {-30, 60},
                             .translate = {0.3F, 0.1F},
                             .scale = {0.5F, 2},
                             .shear = {-20, 30, -10, 10},
                             .fill = {77},
                             .probability = 0.8F};
  for (std::uint64_t record = 0; record < 60; ++record) {
    const Image image = random_image(21, 34, 3, record);
    Philox random = draws(0, record);
    const auto between = [&](double low, double high) { return low + (high - low) * double{random.uniform()}; };
    const bool drawn = random.uniform() < 0.8F;
    AffineParts parts{.center = {.x = 17, .y = 10.5}};
    parts.degrees = between(-30, 60);
    parts.move_x = std::nearbyint(34 * between(-0.3F, 0.3F));
    parts.move_y = std::nearbyint(21 * between(-0.1F, 0.1F));
    parts.scale = between(0.5, 2);
    parts.shear_x = between(-20, 30);
    parts.shear_y = between(-10, 10);
    const Image expected = drawn ? naive_affine(image, source_map(parts), 77) : image;
    expect_near(run_chain(random_affine(options), image, DType::kU8, record).values, expected.values, 0);
  }
}

TEST(RandomAffine, ChangesNothingByDefault) {
  const Image image = random_image(9, 12, 3, 1);
  expect_near(run_chain(random_affine({}), image, DType::kU8).values, image.values, 0);
}

}  // namespace
}  // namespace headrace::test
