#include <cstring>
#include <stdexcept>

#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"

namespace headrace {
namespace {

using namespace test;
using ::testing::HasSubstr;

TEST(UserMap, GetsInputAndRandomNumbers) {
  UserMap map{.name = "sum", .output = {.dtype = DType::kF32, .shape = {2}}};
  map.function = [](std::span<const std::byte> in, const Shape& shape, std::span<std::byte> out, Philox& random) {
    EXPECT_EQ(shape, (Shape{4, 5, 3}));
    const float values[2] = {static_cast<float>(in.size()), random.uniform()};
    std::memcpy(out.data(), values, sizeof values);
  };
  const auto result = run_chain(user_map(map), random_image(4, 5, 3, 1), DType::kU8, 9);
  EXPECT_EQ(result.field.shape, (Shape{2}));
  expect_near(result.values, {60, draws(0, 9).uniform()}, 0);
}

TEST(UserMap, RefusesWhatCannotBe) {
  UserMap map{.name = "f", .output = {.shape = {1}}};
  EXPECT_THAT(refusal_of_operations(user_map(map), rgb_field()), HasSubstr("no function"));
  map.function = [](auto&&...) {};
  map.output.shape = {Shape::kDynamic};
  EXPECT_THAT(refusal_of_operations(user_map(map), rgb_field()), HasSubstr("fixed shape"));
}

TEST(UserMap, KnowsItsField) { EXPECT_EQ(field_of(user_map({.field = "x"}).list()[0]), "x"); }

}  // namespace
}  // namespace headrace
