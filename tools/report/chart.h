// Charts: values over epochs or over time.
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

// One share in [0, 1] for each of the chart's names.
struct ShareSample {
  double begin = 0, end = 0;  // seconds; begins rise
  std::vector<double> shares;
};

// Curves, or shares of time in percent, stacked.
struct Chart {
  std::string title, x_title, y_title;
  AxisOptions x = {}, y = {};
  std::vector<Curve> curves = {};             // those without points are left out
  std::vector<std::string> share_names = {};  // from the bottom up
  std::vector<ShareSample> samples = {};
};

// An SVG element; empty where there is neither a point nor a sample. Many points are drawn as fewer, the extremes
// among them, many samples as their means; where nothing was sampled nothing is drawn. A curve is named at its end
// with its last value, a share with its mean.
std::string draw(const Chart& chart);

}  // namespace headrace::tools
