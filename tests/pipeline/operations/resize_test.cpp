#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"

namespace headrace::test {
namespace {

TEST(Resize, ToTheShorterSide) {
  const Image image = random_image(20, 45, 3, 2);
  const auto result = run_chain(resize(10), image, DType::kU8);
  EXPECT_EQ(result.field.shape, (Shape{10, 22, 3}));
  EXPECT_EQ(run_chain(resize(10) | center_crop(8), image, DType::kU8).field.shape, (Shape{8, 8, 3}));
}

TEST(Resize, RefusesToMakeALineMorePixelsThanAnImageMayHave) {
  const Field field{.name = "image", .dtype = DType::kU8, .shape = {Shape::kDynamic, Shape::kDynamic, 3}};
  const auto stages = planned(resize(16384) | center_crop(8));
  const Chain chain(field, stages);
  Scratch scratch;
  QuietProbe probe;
  const std::vector<std::byte> line(3 * 20'000);
  std::vector<std::byte> row(8 * 8 * 3);
  EXPECT_THROW(
      chain.run_into({.bytes = line, .shape = {1, 20'000, 3}}, {.scratch = &scratch, .probe = &probe}, row),
      Error);
}

TEST(Resize, ToHeightAndWidth) {
  const Image wide = random_image(20, 45, 3, 2), high = random_image(45, 20, 3, 3);
  for (const Image& image : {wide, high}) {
    const auto result = run_chain(resize(10, 31), image, DType::kU8);
    EXPECT_EQ(result.field.shape, (Shape{10, 31, 3}));
  }
  // Where the aspect is kept, it is the other resize.
  EXPECT_EQ(run_chain(resize(10, 22), wide, DType::kU8).values, run_chain(resize(10), wide, DType::kU8).values);
  EXPECT_EQ(run_chain(resize(22, 10), high, DType::kU8).values, run_chain(resize(10), high, DType::kU8).values);
}

TEST(Resize, ToHeightAndWidthComputesOnlyWhatACropLeaves) {
  const Image image = random_image(33, 47, 3, 4);
  const auto whole = run_chain(resize(12, 30), image, DType::kU8);
  const auto cropped = run_chain(resize(12, 30) | center_crop(8), image, DType::kU8);
  for (std::int64_t row = 0; row < 8; ++row) {
    const float* const from = whole.values.data() + ((row + 2) * 30 + 11) * 3;
    EXPECT_TRUE(std::equal(from, from + 24, cropped.values.data() + row * 24)) << row;
  }
}

}  // namespace
}  // namespace headrace::test
