#include "headrace/devices/base/shape.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(Shape, AScalarHasOneElement) {
  const Shape scalar;
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(scalar.to_string(), "()");
}

TEST(Shape, KnowsItsExtents) {
  const Shape image{32, 24, 3};
  EXPECT_EQ(image.rank(), 3);
  EXPECT_EQ(image[1], 24);
  EXPECT_EQ(image.back(), 3);
  EXPECT_EQ(image.elements(), 2304);
  EXPECT_EQ(std::vector<std::int64_t>(image.extents().begin(), image.extents().end()),
            (std::vector<std::int64_t>{32, 24, 3}));
}

TEST(Shape, AnEmptyAxisHasNoElements) { EXPECT_EQ((Shape{5, 0, 3}).elements(), 0); }

TEST(Shape, ElementsDoNotOverflowThirtyTwoBits) {
  EXPECT_EQ((Shape{1 << 20, 1 << 20}).elements(), std::int64_t{1} << 40);
}

TEST(Shape, FrontIsPutOnAndTakenOff) {
  const Shape image{32, 32, 3};
  EXPECT_EQ(image.with_front(512), (Shape{512, 32, 32, 3}));
  EXPECT_EQ(image.with_front(512).without_front(), image);
  EXPECT_EQ(Shape().with_front(4), Shape{4});
}

TEST(Shape, EqualityLooksAtRankAndExtents) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{2}), (Shape{2, 1}));
  EXPECT_EQ((Shape{2, 3, 4}).without_front(), (Shape{3, 4})) << "extents beyond the rank must not count";
}

TEST(Shape, PrintsAsATuple) {
  EXPECT_EQ((Shape{512, 32, 32, 3}).to_string(), "(512, 32, 32, 3)");
  EXPECT_EQ(Shape{7}.to_string(), "(7,)");
  EXPECT_EQ((Shape{Shape::kDynamic, Shape::kDynamic, 3}).to_string(), "(?, ?, 3)");
}

TEST(Shape, TellsADynamicExtent) {
  EXPECT_TRUE((Shape{Shape::kDynamic, 3}).is_dynamic());
  EXPECT_FALSE((Shape{1, 3}).is_dynamic());
}

TEST(Shape, RefusesMoreThanSixAxesAndAScalarsFront) {
  const Shape six{1, 2, 3, 4, 5, 6};
  EXPECT_EQ(six.rank(), 6);
  EXPECT_THROW((Shape{1, 2, 3, 4, 5, 6, 7}), Error);
  EXPECT_THROW(six.with_front(1), Error);
  EXPECT_THROW(Shape().without_front(), Error);
}

}  // namespace
}  // namespace headrace::test
