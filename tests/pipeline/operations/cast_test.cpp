#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"

namespace headrace::test {
namespace {

TEST(Cast, RoundsAndSaturates) {
  Image image = random_image(1, 5, 1, 0);
  image.values = {-3.0F, 0.4F, 1.5F, 2.6F, 300.0F};
  expect_near(run_chain(cast(DType::kU8), image, DType::kF32).values, {0, 0, 2, 3, 255}, 0);
  // Rounding is not lost when a cast back follows.
  expect_near(run_chain(cast(DType::kU8) | cast(DType::kF32), image, DType::kF32).values, {0, 0, 2, 3, 255}, 0);
  image.values = {0, 1, 2, 254, 255};
  expect_near(run_chain(cast(DType::kF32), image, DType::kU8).values, image.values, 0);
  expect_near(run_chain(normalize({0}, {1}) | cast(DType::kU8) | cast(DType::kF32), image, DType::kU8).values,
              {0, 0, 0, 1, 1}, 0);
}

TEST(Cast, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal_of_operations(cast(DType::kF16), rgb_field()), HasSubstr("float16"));
}

}  // namespace
}  // namespace headrace::test
