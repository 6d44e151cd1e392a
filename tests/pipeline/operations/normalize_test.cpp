#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"

namespace headrace::test {
namespace {

TEST(Normalize, TakesWhatIsNoImage) {
  const Field field{.name = "image", .dtype = DType::kF32, .shape = {6}};
  const auto stages = planned(normalize({1, 2, 3, 4, 5, 6}, {1, 1, 1, 2, 2, 2}));
  const Chain chain(field, stages, ChainPlace::kAfterCache);
  const auto bytes = to_elements({2, 2, 2, 2, 2, 2}, DType::kF32);
  std::vector<std::byte> row(bytes.size());
  Scratch scratch;
  QuietProbe probe;
  chain.run_into({.bytes = bytes, .shape = field.shape}, {.scratch = &scratch, .probe = &probe}, row);
  expect_near(from_elements(row, DType::kF32), {1, 0, -1, -1, -1.5F, -2}, 1e-6F);
}

TEST(Normalize, TellsTheFieldAfterIt) {
  EXPECT_EQ(field_after(normalize({0}, {1}), rgb_field()), image_field({32, 48, 3}, DType::kF32));
}

TEST(Normalize, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal_of_operations(normalize({kNan}, {1}), rgb_field()), HasSubstr("finite"));
  EXPECT_THAT(refusal_of_operations(normalize({0}, {kInfinity}), rgb_field()), HasSubstr("finite"));
  EXPECT_THAT(refusal_of_operations(normalize({0, 0}, {1, 1}), rgb_field()), HasSubstr("2 means for 3 channels"));
  EXPECT_THAT(refusal_of_operations(normalize({0}, {0}), rgb_field()), HasSubstr("deviation is 0"));
  EXPECT_THAT(refusal_of_operations(normalize({0}, {-1}), rgb_field()), HasSubstr("deviation is -1"));
  EXPECT_THAT(refusal_of_operations(normalize({0}, {kNan}), rgb_field()), HasSubstr("finite"));
  EXPECT_THAT(refusal_of_operations(normalize({125.3F}, {63}), rgb_field()), HasSubstr("above 1"));
  EXPECT_THAT(refusal_of_operations(normalize({0}, {255}), rgb_field()), HasSubstr("divide both by 255"));
  EXPECT_EQ(field_after(cast(DType::kF32) | normalize({125.3F}, {63}), rgb_field()).dtype, DType::kF32);
  EXPECT_THAT(refusal_of_operations(normalize({}, {}), rgb_field()), HasSubstr("0 means"));
}

TEST(Normalize, DescribesItself) {
  EXPECT_EQ(describe(normalize({0.5F, 1}, {2, 3}).list()[0]), "normalize(mean=[0.5, 1], std=[2, 3])");
}

}  // namespace
}  // namespace headrace::test
