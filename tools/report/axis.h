// The scale of one side of a chart.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace headrace::tools {

struct AxisOptions {
  std::size_t max_steps = 5;  // between ticks
  bool whole = false;         // ticks are whole numbers
  bool from_zero = false;     // the scale includes 0
};

// Extends from the first tick to the last; ticks are multiples of 1, 2 or 5 times a power of ten.
struct Axis {
  std::vector<double> ticks;  // at least two, ascending
  double step = 1;

  double low() const { return ticks.front(); }
  double high() const { return ticks.back(); }
  // Returns the position of a value: 0 at the first tick, 1 at the last.
  double position(double value) const { return (value - low()) / (high() - low()); }
  // Returns a label with the decimals that distinguish ticks, thousands as k and so forth: "0.25", "12k".
  std::string label(double tick) const;
};

// Returns an axis with both values, in any order; with some room around them if they are equal. REQUIRES: both are
// finite.
Axis make_axis(double a, double b, const AxisOptions& options = {});

}  // namespace headrace::tools
