// Shares of time, stacked, over time.
#pragma once

#include <string>
#include <vector>

namespace headrace::tools {

// One share in [0, 1] for each of the chart's names.
struct ShareSample {
  double begin = 0, end = 0;  // seconds; begins rise
  std::vector<double> shares;
};

struct ShareChart {
  std::string title, x_title, y_title;
  std::vector<std::string> names;  // from the bottom up
  std::vector<ShareSample> samples;
};

// An SVG element; empty where there are no samples. Many samples are drawn as fewer, which are their means. Where
// nothing was sampled nothing is drawn. Each share is named with its mean.
std::string draw(const ShareChart& chart);

}  // namespace headrace::tools
