#include "headrace/tools/report/number_text.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>

namespace headrace::tools {
namespace {

// Returns three significant digits, or all those before the point; no exponent if it can be avoided.
std::string three_digits(double value) {
  const double size = std::abs(std::stod(fmt::format("{:.2e}", value)));
  if (size == 0) return "0";
  if (size < 1e-4 || size >= 1e6) return fmt::format("{:.3g}", value);
  const int before = size < 1 ? 0 : static_cast<int>(std::floor(std::log10(size))) + 1;
  if (before > 0) return fmt::format("{:.{}f}", value, before >= 3 ? 0 : 3 - before);
  const int zeros = static_cast<int>(-std::floor(std::log10(size))) - 1;
  return fmt::format("{:.{}f}", value, zeros + 3);
}

}  // namespace

std::string short_number(double value) {
  static constexpr std::array<const char*, 5> kUnits{"", "k", "M", "G", "T"};
  static constexpr double kRoundedUp = 999.5;
  std::size_t unit = 0;
  while (std::abs(value) >= kRoundedUp && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return three_digits(value) + kUnits[unit];
}

std::string percent(double share) {
  const double value = 100 * share;
  if (value == 0) return "0 %";
  if (std::abs(value) < 0.01) return "< 0.01 %";
  const int decimals = std::abs(value) < 1 ? 2 : std::abs(value) < 10 ? 1 : 0;
  return fmt::format("{:.{}f} %", value, decimals);
}

std::string duration(double seconds) {
  if (seconds < 1) return fmt::format("{:.0f} ms", 1000 * seconds);
  if (seconds < 60) return three_digits(seconds) + " s";
  const auto whole = static_cast<long long>(std::llround(std::min(seconds, 1e15)));
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string nanoseconds_text(double ns) {
  if (ns < 1e3) return three_digits(ns) + " ns";
  if (ns < 1e6) return three_digits(ns * 1e-3) + " µs";
  return ns < 1e9 ? three_digits(ns * 1e-6) + " ms" : duration(ns * 1e-9);
}

}  // namespace headrace::tools
