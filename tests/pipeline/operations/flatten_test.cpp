#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"

namespace headrace::test {
namespace {

TEST(Flatten, LeavesOneRowOfElements) {
  const auto flat = run_chain(normalize({0}, {1}) | flatten(), random_image(6, 7, 3, 8), DType::kU8);
  EXPECT_EQ(flat.field.shape, (Shape{126}));
}

TEST(Flatten, TellsTheFieldAfterIt) { EXPECT_EQ(field_after(flatten(), rgb_field()), image_field({32 * 48 * 3})); }

TEST(Flatten, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal_of_operations(flatten(), image_field({Shape::kDynamic, 4, 3})),
              HasSubstr("differs from record"));
}

}  // namespace
}  // namespace headrace::test
