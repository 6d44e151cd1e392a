#include "headrace/devices/base/error.h"
#include "headrace/tests/pipeline/operations/chain_fixture.h"

namespace headrace {
namespace {

using namespace test;

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
    try {
      one_hot_of(one_hot(4), label);
      FAIL() << label;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
      EXPECT_NE(error.message().find("label " + std::to_string(label)), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace headrace
