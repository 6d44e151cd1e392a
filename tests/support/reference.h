// What the oracles in reference_*.h share: everything is a vector of f64, computed the plainest way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "headrace/devices/base/rng.h"

namespace headrace::test {

using Reals = std::vector<double>;

inline Reals reals(const std::vector<float>& values) { return {values.begin(), values.end()}; }

// `count` numbers in [-1, 1), the same for the same seed.
inline std::vector<float> random_floats(std::int64_t count, std::uint64_t seed) {
  Philox random({.seed = seed});
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = 2 * random.uniform() - 1;
  return values;
}

// The gradient at `x` of the sum over `weights` * function(x), by central differences.
inline Reals differences(const std::function<Reals(const Reals&)>& function, Reals x, const Reals& weights) {
  constexpr double kStep = 1e-5;
  const auto weighted = [&](const Reals& at) {
    const Reals y = function(at);
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += weights[i] * y[i];
    return sum;
  };
  Reals gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double middle = x[i];
    x[i] = middle + kStep;
    const double above = weighted(x);
    x[i] = middle - kStep;
    gradient[i] = (above - weighted(x)) / (2 * kStep);
    x[i] = middle;
  }
  return gradient;
}

}  // namespace headrace::test
