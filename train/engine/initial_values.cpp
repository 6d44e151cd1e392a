#include "headrace/train/engine/initial_values.h"

#include <cmath>

#include "headrace/devices/base/rng.h"

namespace headrace {
namespace {

float uniform_limit(const VariableSpec& spec) {
  const auto fan = spec.fill == Fill::kGlorotUniform ? spec.fan_in + spec.fan_out : spec.fan_in;
  return std::sqrt(6.0F / static_cast<float>(fan));
}

}  // namespace

std::vector<float> initial_values(const VariableSpec& spec, std::uint64_t seed, std::uint64_t number) {
  std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()),
                            spec.fill == Fill::kOnes ? 1.0F : 0.0F);
  if (spec.fill == Fill::kZeros || spec.fill == Fill::kOnes) return values;
  const float limit = uniform_limit(spec);
  Philox random({.seed = seed, .record = number});
  for (float& value : values) value = (2.0F * random.uniform() - 1.0F) * limit;
  return values;
}

}  // namespace headrace
