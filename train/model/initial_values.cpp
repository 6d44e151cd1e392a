#include "headrace/train/model/initial_values.h"

#include <algorithm>
#include <cmath>

#include "headrace/devices/base/rng.h"

namespace headrace {
namespace {

float uniform_limit(const VariableSpec& spec) {
  if (spec.fill == Fill::kUniform) return spec.constant;
  const auto fan_in = static_cast<float>(spec.fan_in);
  if (spec.fill == Fill::kFanInUniform || spec.fill == Fill::kDirac) return 1.0F / std::sqrt(fan_in);
  return std::sqrt(6.0F /
                   (spec.fill == Fill::kGlorotUniform ? fan_in + static_cast<float>(spec.fan_out) : fan_in));
}

// Sets filter c of shape (O, KH, KW, C) to 1 at its centre for channel c, 0 elsewhere.
void pass_channels_on(const Shape& shape, std::vector<float>& values) {
  const std::int64_t filters = std::min(shape[0], shape.back());
  const std::int64_t filter = shape.elements() / shape[0];
  std::fill_n(values.begin(), filters * filter, 0.0F);
  const std::int64_t centre = shape.rank() == 4 ? (shape[1] / 2 * shape[2] + shape[2] / 2) * shape[3] : 0;
  for (std::int64_t c = 0; c < filters; ++c) values[static_cast<std::size_t>(c * filter + centre + c)] = 1.0F;
}

void divide_by_deviation(std::vector<float>& values) {
  if (values.size() < 2) return;
  double sum = 0, squares = 0;
  for (const float value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (const float value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  for (float& value : values) value = static_cast<float>(value / deviation);
}

}  // namespace

std::vector<float> initial_values(const VariableSpec& spec, std::uint64_t seed, std::uint64_t number) {
  std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()),
                            spec.fill == Fill::kConstant ? spec.constant : 0.0F);
  if (spec.fill == Fill::kZeros || spec.fill == Fill::kConstant) return values;
  const float limit = uniform_limit(spec);
  Philox random({.seed = seed, .record = number});
  for (float& value : values) value = (2.0F * random.uniform() - 1.0F) * limit;
  if (spec.fill == Fill::kDirac) pass_channels_on(spec.shape, values);
  if (spec.fill == Fill::kUnitDeviation) divide_by_deviation(values);
  return values;
}

}  // namespace headrace
