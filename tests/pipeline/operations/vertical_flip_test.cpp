#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"
#include "headrace/tests/pipeline/operations/operation_streams.h"

namespace headrace::test {
namespace {

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

TEST(VerticalFlip, IsOneStreamForAnyThreadsReplicasPrefetchAndResumePoint) {
  expect_operation_streams(augmented_by(flip() | vertical_flip() | to_planes()));
}

TEST(VerticalFlip, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal_of_operations(vertical_flip(kNan), rgb_field()), HasSubstr("probability"));
  EXPECT_THAT(refusal_of_operations(flatten() | vertical_flip(), rgb_field()), HasSubstr("(H, W, C)"));
}

}  // namespace
}  // namespace headrace::test
