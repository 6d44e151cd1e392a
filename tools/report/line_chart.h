// Curves: values over epochs or over time.
#pragma once

#include <string>
#include <vector>

#include "headrace/tools/report/axis.h"

namespace headrace::tools {

struct CurvePoint {
  double x = 0, y = 0;
  bool follows = true;  // there is a line from the point before to it
};

struct Curve {
  std::string name;
  std::vector<CurvePoint> points;  // x rises
  int colour = 0;                  // from 0; colours after the first have dashes of their own
};

struct LineChart {
  std::string title, x_title, y_title;
  AxisOptions x = {}, y = {};
  std::vector<Curve> curves;  // those without points are left out
};

// An SVG element; empty where no curve has a point. A curve of many points is drawn with fewer, its extremes
// among them. Each curve is named at its end with its last value.
std::string draw(const LineChart& chart);

}  // namespace headrace::tools
