#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"

namespace headrace::test {
namespace {

TEST(ToLayout, ConvertsPlanesToInterleaved) {
  const Image image = random_image(6, 7, 3, 8);
  const auto back =
      run_chain(to_layout(ImageLayout::kChannelsFirst) | to_layout(ImageLayout::kChannelsLast), image, DType::kU8);
  EXPECT_EQ(back.field.shape, (Shape{6, 7, 3}));
  expect_near(back.values, image.values, 0);
}

// The plan says where channels are, whatever the extents.
TEST(Layout, IsThePlansAndNotOfExtents) {
  constexpr auto kFirst = ImageLayout::kChannelsFirst, kLast = ImageLayout::kChannelsLast;
  for (const Shape& shape :
       {Shape{9, 9, 13}, Shape{7, 7, 512}, Shape{2, 64, 3}, Shape{1, 64, 3}, Shape{1, 1, 1}}) {
    const Field last = image_field(shape);
    const Field first = field_after(to_layout(kFirst), last);
    EXPECT_EQ(first.shape, (Shape{shape[2], shape[0], shape[1]}));
    EXPECT_EQ(field_after(to_layout(kLast), first), last);
    EXPECT_EQ(field_after(flip(), last), last);
    const std::vector<float> each(static_cast<std::size_t>(shape[2]), 0.5F);
    EXPECT_EQ(field_after(normalize(each, each), last).shape, shape);
    EXPECT_EQ(field_after(normalize(each, each), first).shape, first.shape);
    EXPECT_THAT(refusal_of_operations(flip(), first), HasSubstr("channels come first"));
    EXPECT_EQ(field_after(layout_is(kFirst) | to_layout(kLast), image_field(first.shape)), last);
    EXPECT_THAT(refusal_of_operations(layout_is(kLast), first), HasSubstr("the other one"));
  }
  const std::vector<float> nine(9, 0.5F);
  EXPECT_THAT(refusal_of_operations(normalize(nine, nine), image_field({9, 9, 13})),
              HasSubstr("9 means for 13 channels"));
}

TEST(Layout, IsAskedForWhereExtentsSuggestAnother) {
  const std::vector<float> three(3, 0.5F);
  for (const Shape& shape :
       {Shape{3, 32, 48}, Shape{13, 64, 64}, Shape{2, 64, 64}, Shape{1, 28, 28}, Shape{8, 64, 16}}) {
    const Field doubtful = image_field(shape);
    for (const Operations& chain : {flip(), normalize(three, three), to_layout(ImageLayout::kChannelsFirst),
                                    resize(8), center_crop(2), pad_crop(2, 1), cutout(3), Operations(cutmix())}) {
      EXPECT_THAT(refusal_of_operations(chain, doubtful), HasSubstr("nothing says where they are"))
          << shape.to_string();
    }
    // What does not depend on it, and what says it itself.
    const std::vector<float> each(static_cast<std::size_t>(shape[2]), 0.5F);
    EXPECT_EQ(field_after(normalize({0.5F}, {0.5F}) | cast(DType::kF32) | flatten(), doubtful).shape.rank(), 1);
    EXPECT_EQ(field_after(cutout(3, each) | normalize(each, each) | flip(), doubtful).shape, shape);
    EXPECT_EQ(field_after(layout_is(ImageLayout::kChannelsLast) | flip(), doubtful).shape, shape);
  }
  for (const Shape& shape :
       {Shape{9, 9, 13}, Shape{13, 64, 3}, Shape{2, 64, 3}, Shape{13, 9, 13}, Shape{64, 64, 13}, Shape{4, 4, 2}}) {
    EXPECT_EQ(field_after(flip(), image_field(shape)).shape, shape);
  }
  // A resize leaves no doubt.
  EXPECT_EQ(field_after(resize(3, 64) | flip(), image_field({32, 48, 13})).shape, (Shape{3, 64, 13}));
}

TEST(Layout, MovesAllBandsOfAPixel) {
  const Image image = random_image(9, 9, 13, 8);
  const auto planes = run_chain(to_layout(ImageLayout::kChannelsFirst), image, DType::kU8);
  ASSERT_EQ(planes.values.size(), image.values.size());
  for (std::size_t pixel = 0; pixel < 81; ++pixel) {
    for (std::size_t band = 0; band < 13; ++band) {
      ASSERT_EQ(planes.values[band * 81 + pixel], image.values[pixel * 13 + band]);
    }
  }
  const auto back = run_chain(normalize({0}, {1}) | layout_is(ImageLayout::kChannelsLast) |
                                  to_layout(ImageLayout::kChannelsFirst) | to_layout(ImageLayout::kChannelsLast),
                              image, DType::kF32);
  expect_near(back.values, image.values, 0);
}

}  // namespace
}  // namespace headrace::test
