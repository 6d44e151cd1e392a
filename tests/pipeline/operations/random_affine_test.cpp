#include <algorithm>
#include <cmath>

#include "headrace/pipeline/operations/kernels/affine_map.h"
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"
#include "headrace/tests/pipeline/operations/operation_streams.h"

namespace headrace {
namespace {

using namespace test;
using ::testing::HasSubstr;

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

TEST(RandomAffine, IsOneStreamForAnyThreadsReplicasPrefetchAndResumePoint) {
  expect_operation_streams(
      augmented_by(random_affine({.degrees = {-9, 9}, .translate = {0.2F, 0}, .scale = {0.8F, 1}}) | flip()));
}

TEST(RandomAffine, RefusesWhatCannotBe) {
  const auto refusal = [](const RandomAffine& options) {
    return refusal_of_operations(random_affine(options), rgb_field());
  };
  EXPECT_THAT(refusal({.degrees = {1, 0}}), HasSubstr("ends before it begins"));
  EXPECT_THAT(refusal({.translate = {1.5F, 0}}), HasSubstr("to translate by is not within 0 and 1"));
  EXPECT_THAT(refusal({.translate = {0, kNan}}), HasSubstr("to translate by"));
  EXPECT_THAT(refusal({.scale = {0, 1}}), HasSubstr("0 < minimum"));
  EXPECT_THAT(refusal({.scale = {1, 0.5F}}), HasSubstr("minimum <= maximum"));
  EXPECT_THAT(refusal({.shear = {0, 90}}), HasSubstr("shear are not within -89 and 89"));
  EXPECT_THAT(refusal({.fill = {300}}), HasSubstr("0 and 255"));
}

}  // namespace
}  // namespace headrace
