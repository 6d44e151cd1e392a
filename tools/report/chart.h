// Charts: values over epochs or over time.
#pragma once

#include <string>
#include <vector>

#include "headrace/tools/report/axis.h"

namespace headrace::tools {

struct CurvePoint {
  double x = 0, y = 0;
  bool follows = true;  // a line joins it to the previous point
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  // ascending x
  int colour = 0;                  // from 0; each colour after the first has its own dashes
};

// One share in [0, 1] for each of the chart's names.
struct ShareSample {
  double begin = 0, end = 0;  // seconds; begins ascend
  std::vector<double> shares;
};

// Curves, or shares of time in percent, stacked.
struct Chart {
  std::string title, x_title, y_title;
  AxisOptions x = {}, y = {};
  std::vector<Curve> curves = {};             // curves without points are omitted
  std::vector<std::string> share_names = {};  // from the bottom up
  std::vector<ShareSample> samples = {};
};

// Returns an SVG element; empty if there is neither a point nor a sample. Draws many points as fewer, including
// the extremes, and many samples as their means; draws nothing where nothing was sampled. Labels a curve at its
// end with its last value, a share with its mean.
std::string draw(const Chart& chart);

}  // namespace headrace::tools
