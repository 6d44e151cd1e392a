#include "headrace/train/step/muon_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

constexpr std::uint64_t kMaxSteps = std::uint64_t{1} << 24;

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

NormSchedule::NormSchedule(const NormInterval& interval)
    : longest_(static_cast<std::uint64_t>(interval.first + interval.growth)) {
  if (interval.first < 1 || interval.growth < 0 || interval.over_steps < 1 || interval.over_steps > kMaxSteps) {
    throw ConfigError(fmt::format("Muon cannot scale norms every {} updates, growing by {} over {}",
                                  interval.first, interval.growth, interval.over_steps),
                      "the interval is at least 1 and grows by 0 or more, over 1 to 2^24 updates");
  }
  if (interval.growth == 0) return;
  const auto first = static_cast<std::uint64_t>(interval.first),
             growth = static_cast<std::uint64_t>(interval.growth);
  for (std::uint64_t update = 1, last = 0; update <= interval.over_steps; ++update) {
    if (update - last < first + growth * update / interval.over_steps) continue;
    past_.push_back(last = update);
  }
}

bool NormSchedule::scales(std::uint64_t step) const {
  const std::uint64_t update = step + 1;
  const std::uint64_t last = past_.empty() ? 0 : past_.back();
  if (update > last) return (update - last) % longest_ == 0;
  return std::ranges::binary_search(past_, update);
}

}  // namespace headrace
