#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"

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

TEST(Flip, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal_of_operations(flip(kNan), rgb_field()), HasSubstr("probability"));
  EXPECT_THAT(refusal_of_operations(flip(1.5F), rgb_field()), HasSubstr("probability"));
  EXPECT_THAT(refusal_of_operations(to_layout(ImageLayout::kChannelsFirst) | flip(), rgb_field()),
              HasSubstr("channels come first"));
  EXPECT_THAT(refusal_of_operations(flatten() | flip(), rgb_field()), HasSubstr("(H, W, C)"));
}

TEST(Flip, IsRandomAndDescribesItself) {
  EXPECT_EQ(field_of(flip().list()[0]), "image");
  EXPECT_TRUE(is_random(flip().list()[0]));
  EXPECT_TRUE(is_random(alternating_flip().list()[0]));
  EXPECT_EQ(describe(flip().list()[0]), "flip(probability=0.5, draw=each_pass)");
  EXPECT_EQ(describe(alternating_flip().list()[0]), "flip(probability=0.5, draw=alternating)");
}

}  // namespace
}  // namespace headrace::test
