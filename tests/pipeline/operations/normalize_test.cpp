// Operations on the values of a field: casts, normalizing, one_hot().
#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(Normalize, TakesWhatIsNoImage) {
  const Field field{.name = "image", .dtype = DType::kF32, .shape = {6}};
  const auto stages = planned(normalize({1, 2, 3, 4, 5, 6}, {1, 1, 1, 2, 2, 2}));
  const Chain chain(field, stages);
  const auto bytes = to_elements({2, 2, 2, 2, 2, 2}, DType::kF32);
  std::vector<std::byte> row(bytes.size());
  Scratch scratch;
  QuietProbe probe;
  chain.run_into({.bytes = bytes, .shape = field.shape}, {.scratch = &scratch, .probe = &probe}, row);
  expect_near(from_elements(row, DType::kF32), {1, 0, -1, -1, -1.5F, -2}, 1e-6F);
}

std::vector<float> naive_standardization(const std::vector<float>& values) {
  double mean = 0, variance = 0;
  const auto count = static_cast<double>(values.size());
  for (const float value : values) mean += double{value} / count;
  for (const float value : values) variance += (double{value} - mean) * (double{value} - mean) / count;
  const double deviation = std::max(std::sqrt(variance), 1 / std::sqrt(count));
  std::vector<float> result;
  for (const float value : values) result.push_back(static_cast<float>((double{value} - mean) / deviation));
  return result;
}

TEST(PerImageStandardization, HasMean0AndDeviation1) {
  for (const std::int64_t width : {1, 5, 200}) {
    Image image = random_image(150, width, 3, 2);
    const auto expected = naive_standardization(image.values);
    expect_near(run_chain(per_image_standardization(), image, DType::kU8).values, expected, 2e-6F);
    expect_near(run_chain(per_image_standardization(), image, DType::kF32).values, expected, 2e-6F);
    for (float& value : image.values) value = value * 1e-3F + 50;
    expect_near(run_chain(per_image_standardization(), image, DType::kF32).values,
                naive_standardization(image.values), 2e-4F);
  }
}

TEST(PerImageStandardization, OfAPlaneIsZeros) {
  Image image = random_image(8, 9, 3, 2);
  std::ranges::fill(image.values, 255.0F);
  for (const DType type : {DType::kU8, DType::kF32}) {
    expect_near(run_chain(per_image_standardization(), image, type).values, std::vector<float>(216), 0);
  }
}

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

std::vector<float> one_hot_of(const Operations& operations, std::int64_t label) {
  const Field field{.name = "label", .dtype = DType::kI64, .shape = {}};
  const auto stages = planned(operations);
  const Chain chain(field, stages);
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

TEST(Flatten, LeavesOneRowOfElements) {
  const auto flat = run_chain(normalize({0}, {1}) | flatten(), random_image(6, 7, 3, 8), DType::kU8);
  EXPECT_EQ(flat.field.shape, (Shape{126}));
}

}  // namespace
}  // namespace headrace::test
