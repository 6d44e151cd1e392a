// The frame around the data of all charts of a page: title, axes, grid, names of lines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headrace/tools/report/axis.h"

namespace headrace::tools {

// One line or area of a chart. The page's style gives `colour`, from 0, its colour (page_style.h).
struct Label {
  std::string text;
  int colour = 0;
  double y = 0;  // preferred position, in the units of the data
};

struct PlotFrame {
  std::string title;  // read aloud and shown as a tooltip
  std::string x_title, y_title;
  Axis x, y;

  static constexpr double kWidth = 420, kHeight = 230;
  static constexpr double kLeft = 48, kRight = 300, kTop = 26, kBottom = 190;

  double at_x(double value) const { return kLeft + x.position(value) * (kRight - kLeft); }
  double at_y(double value) const { return kBottom - y.position(value) * (kBottom - kTop); }
  // Returns an SVG element with `data` between the grid and the labels, which are at the right end of the data,
  // moved apart if they would touch.
  std::string draw(std::string_view data, std::vector<Label> labels) const;
};

// Returns a place in a path: "12.3,45".
std::string place(double x, double y);

}  // namespace headrace::tools
