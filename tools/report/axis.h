// The scale of one side of a chart.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace headrace::tools {

struct AxisOptions {
  std::size_t max_steps = 5;  // between ticks
  bool whole = false;         // ticks are whole numbers
  bool from_zero = false;     // the scale holds 0
};

// From the first of its ticks to the last; these are multiples of 1, 2 or 5 times a power of ten.
struct Axis {
  std::vector<double> ticks;  // two at least, rising
  double step = 1;

  double low() const { return ticks.front(); }
  double high() const { return ticks.back(); }
  // Where a value lies: 0 at the first tick, 1 at the last.
  double position(double value) const { return (value - low()) / (high() - low()); }
  // With the decimals that tell ticks apart, thousands as k and so on: "0.25", "12k".
  std::string label(double tick) const;
};

// Holds both values, which are finite and in any order; where they are equal, some room around them.
Axis make_axis(double a, double b, const AxisOptions& options = {});

}  // namespace headrace::tools
