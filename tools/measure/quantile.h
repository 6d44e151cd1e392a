// Order statistics of measurements.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace headrace::tools {

// Returns the value below which `share` of the others, in [0, 1], lie; .5 is the median. Reorders the values.
// REQUIRES: there is at least one value.
inline double quantile(std::vector<double>& values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace headrace::tools
