#include "headrace/tests/pipeline/operations/machinery/chain_fixture.h"
#include "headrace/tests/pipeline/operations/operation_fields.h"
#include "headrace/tests/pipeline/operations/operation_streams.h"

namespace headrace::test {
namespace {

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

TEST(PerImageStandardization, IsFloatsAndDrawsNothing) {
  EXPECT_EQ(field_after(per_image_standardization(), rgb_field()), image_field({32, 48, 3}, DType::kF32));
  EXPECT_FALSE(is_random(per_image_standardization().list()[0]));
}

TEST(PerImageStandardization, IsOneStreamForAnyThreadsReplicasPrefetchAndResumePoint) {
  expect_operation_streams(
      augmented_by(flip() | per_image_standardization() | to_layout(ImageLayout::kChannelsFirst)));
}

}  // namespace
}  // namespace headrace::test
