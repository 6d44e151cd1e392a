// Order statistics of what was measured.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace headrace::tools {

// The value that `share` of the others, in [0, 1], lie below; .5 is the median. Reorders the values, of which
// there must be one.
inline double quantile(std::vector<double>& values, double share) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(share * static_cast<double>(values.size() - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

}  // namespace headrace::tools
