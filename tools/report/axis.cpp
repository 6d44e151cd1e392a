#include "headrace/tools/report/axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace headrace::tools {
namespace {

constexpr double kSlack = 1e-6;    // of a step, for what rounding to float adds
constexpr double kMinRoom = 1e-6;  // of a whole number too large for 1 to change it

double round_step(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - kSlack)) return factor * power;
  }
  return 10 * power;
}

// Widens an empty range.
void widen(double& low, double& high, bool whole) {
  const double size = std::max(std::abs(low), std::abs(high));
  if (high - low > 1e-9 * size && high > low) return;
  const double room = whole ? std::max(1.0, kMinRoom * size) : size > 0 ? 0.1 * size : 1;
  low -= size > 0 ? room : 0;
  high += room;
}

}  // namespace

std::string Axis::label(double tick) const {
  if (std::abs(tick) < kSlack * step) return "0";
  const double size = std::max(std::abs(low()), std::abs(high()));
  if (size < 1e-3 || size >= 1e15) {
    const double digits = std::floor(std::log10(size)) - std::floor(std::log10(step) + kSlack) + 1;
    return fmt::format("{:.{}g}", tick, static_cast<int>(std::clamp(digits, 1.0, 17.0)));
  }
  double unit = 1;
  const char* name = "";
  for (const auto& [from, letter] : {std::pair{1e4, "k"}, {1e7, "M"}, {1e10, "G"}, {1e13, "T"}}) {
    if (size >= from) unit = from / 10, name = letter;
  }
  const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step / unit) + kSlack)));
  return fmt::format("{:.{}f}{}", tick / unit, decimals, name);
}

Axis make_axis(double a, double b, const AxisOptions& options) {
  double low = std::min(a, b), high = std::max(a, b);
  if (options.from_zero) low = std::min(low, 0.0), high = std::max(high, 0.0);
  widen(low, high, options.whole);
  const double rough = (high - low) / static_cast<double>(options.max_steps);
  const double step = options.whole ? std::max(1.0, round_step(rough)) : round_step(rough);
  const double first = std::floor(low / step + kSlack), last = std::ceil(high / step - kSlack);
  Axis axis{.ticks = {}, .step = step};
  const auto steps = static_cast<std::size_t>(last - first);
  for (std::size_t i = 0; i <= steps; ++i) axis.ticks.push_back((first + static_cast<double>(i)) * step);
  return axis;
}

}  // namespace headrace::tools
