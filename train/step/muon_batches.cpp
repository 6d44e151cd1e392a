#include "headrace/train/step/muon_batches.h"

#include <algorithm>
#include <limits>

namespace headrace {
namespace {

// A launch within a graph takes about 1.5 us. These products are small: a GPU does them at about 200 TFLOP/s.
constexpr double kOperationsALaunch = 1.5e-6 * 200e12;

double launches(int iterations) { return 4 + 3.0 * iterations; }

}  // namespace

double muon_operations(std::size_t count, double rows, double columns, int iterations) {
  const auto [small, large] = std::minmax(rows, columns);
  return static_cast<double>(count) * iterations * (4 * small * small * large + 2 * small * small * small);
}

std::vector<std::size_t> muon_batches(std::span<const Shape> matrices, int iterations) {
  const std::size_t count = matrices.size();
  std::vector<double> least(count + 1, std::numeric_limits<double>::infinity());  // of the first n matrices
  std::vector<std::size_t> last(count + 1, 0);                                    // length of their last run
  least[0] = 0;
  for (std::size_t end = 1; end <= count; ++end) {
    double small = 0, large = 0;
    for (std::size_t length = 1; length <= end; ++length) {
      const Shape& shape = matrices[end - length];
      const auto rows = static_cast<double>(shape[0]);
      const double columns = static_cast<double>(shape.elements()) / rows;
      small = std::max(small, std::min(rows, columns));
      large = std::max(large, std::max(rows, columns));
      const double cost = least[end - length] + launches(iterations) * kOperationsALaunch +
                          muon_operations(length, small, large, iterations);
      if (cost > least[end]) continue;
      least[end] = cost;
      last[end] = length;
    }
  }
  std::vector<std::size_t> lengths;
  for (std::size_t end = count; end > 0; end -= last[end]) lengths.push_back(last[end]);
  std::ranges::reverse(lengths);
  return lengths;
}

}  // namespace headrace
