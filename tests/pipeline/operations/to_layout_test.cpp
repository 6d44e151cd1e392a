#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"

namespace headrace {
namespace {

using namespace test;

TEST(ToLayout, ConvertsPlanesToInterleaved) {
  const Image image = random_image(6, 7, 3, 8);
  const auto back =
      run_chain(to_layout(ImageLayout::kChannelsFirst) | to_layout(ImageLayout::kChannelsLast), image, DType::kU8);
  EXPECT_EQ(back.field.shape, (Shape{6, 7, 3}));
  expect_near(back.values, image.values, 0);
}

TEST(ToLayout, TellsTheFieldAfterIt) {
  EXPECT_EQ(field_after(to_layout(ImageLayout::kChannelsFirst), rgb_field()), image_field({3, 32, 48}));
  EXPECT_EQ(
      field_after(to_layout(ImageLayout::kChannelsFirst) | to_layout(ImageLayout::kChannelsLast), rgb_field()),
      rgb_field());
  EXPECT_EQ(field_after(to_layout(ImageLayout::kChannelsLast), rgb_field()), rgb_field());
}

}  // namespace
}  // namespace headrace
