#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"
#include "headrace/tests/pipeline/operations/operation_streams.h"

namespace headrace::test {
namespace {

std::vector<float> one_hot_of(const Operations& operations, std::int64_t label) {
  const Field field{.name = "label", .dtype = DType::kI64, .shape = {}};
  const auto stages = planned(operations);
  const Chain chain(field, stages, ChainPlace::kAfterCache);
  EXPECT_FALSE(chain.is_slow());
  Scratch scratch;
  QuietProbe probe;
  std::vector<std::byte> row(static_cast<std::size_t>(chain.output().shape.elements()) * sizeof(float));
  chain.run_into({.bytes = std::as_bytes(std::span(&label, 1)), .shape = {}},
                 {.scratch = &scratch, .probe = &probe}, row);
  return from_elements(row, DType::kF32);
}

TEST(OneHot, IsOneAtTheClass) {
  EXPECT_EQ(one_hot_of(one_hot(4), 0), (std::vector<float>{1, 0, 0, 0}));
  EXPECT_EQ(one_hot_of(one_hot(4), 3), (std::vector<float>{0, 0, 0, 1}));
  EXPECT_EQ(one_hot_of(one_hot(1), 0), (std::vector<float>{1}));
}

TEST(OneHot, SmoothsTowardsAllClasses) {
  expect_near(one_hot_of(one_hot(4, 0.2F), 1), {0.05F, 0.85F, 0.05F, 0.05F}, 1e-7F);
  expect_near(one_hot_of(one_hot(2, 1), 1), {0.5F, 0.5F}, 0);
}

TEST(OneHot, RefusesWhatIsNoClass) {
  for (const std::int64_t label : {std::int64_t{-1}, std::int64_t{4}, std::int64_t{1} << 40}) {
    const Error error = error_of([&] { one_hot_of(one_hot(4), label); });
    EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
    EXPECT_NE(error.message().find("label " + std::to_string(label)), std::string::npos) << error.what();
  }
}

TEST(OneHot, IsOneStreamForAnyThreadsReplicasPrefetchAndResumePoint) {
  expect_operation_streams(augmented_by(one_hot(10, 0.1F)));
}

TEST(OneHot, TellsTheFieldAfterIt) {
  EXPECT_EQ(field_after(one_hot(7), label_field()), (Field{.name = "label", .dtype = DType::kF32, .shape = {7}}));
}

TEST(OneHot, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal_of_operations(one_hot(0), label_field()), HasSubstr("0 classes"));
  EXPECT_THAT(refusal_of_operations(one_hot(5, -1), label_field()), HasSubstr("smoothing"));
  EXPECT_THAT(refusal_of_operations(one_hot(5), rgb_field()), HasSubstr("class number"));
  EXPECT_THAT(refusal_of_operations(one_hot(5) | one_hot(5), label_field()), HasSubstr("class number"));
}

TEST(OneHot, KnowsItsFieldAndIsNotRandom) {
  EXPECT_EQ(field_of(one_hot(3).list()[0]), "label");
  EXPECT_EQ(field_of(Operation{OneHot{.field = "fine"}}), "fine");
  EXPECT_FALSE(is_random(one_hot(2).list()[0]));
}

}  // namespace
}  // namespace headrace::test
