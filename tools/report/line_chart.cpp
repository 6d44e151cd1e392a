#include "headrace/tools/report/line_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "headrace/tools/report/number_text.h"
#include "headrace/tools/report/plot_frame.h"
#include "headrace/tools/report/xml_text.h"

namespace headrace::tools {
namespace {

constexpr std::size_t kMaxPoints = 400, kMaxDots = 40;

// Of each stretch of points the lowest and the highest, in their order; first and last stay.
std::vector<CurvePoint> thinned(const std::vector<CurvePoint>& points) {
  if (points.size() <= kMaxPoints) return points;
  const std::size_t stretches = kMaxPoints / 2 - 1;
  std::vector<CurvePoint> few{points.front()};
  for (std::size_t i = 0; i < stretches; ++i) {
    const auto begin = points.begin() + static_cast<std::ptrdiff_t>(i * points.size() / stretches);
    const auto end = points.begin() + static_cast<std::ptrdiff_t>((i + 1) * points.size() / stretches);
    auto [low, high] = std::minmax_element(begin, end, [](auto& a, auto& b) { return a.y < b.y; });
    const bool gap = std::any_of(begin, end, [](const CurvePoint& point) { return !point.follows; });
    if (low > high) std::swap(low, high);
    few.push_back({low->x, low->y, !gap});
    if (high != low) few.push_back({high->x, high->y});
  }
  few.push_back({points.back().x, points.back().y});
  return few;
}

std::string draw_curve(const PlotFrame& frame, const Curve& curve) {
  const std::vector<CurvePoint> points = thinned(curve.points);
  std::string path;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const bool line = i > 0 && points[i].follows;
    path += line ? 'L' : 'M';
    path += place(frame.at_x(points[i].x), frame.at_y(points[i].y));
  }
  std::string svg = fmt::format(R"(<path class="line c{}" d="{}"><title>{}</title></path>)", curve.colour, path,
                                xml_text(curve.name));
  if (points.size() > kMaxDots) return svg;
  for (const CurvePoint& point : points) {
    svg += fmt::format(
        R"(<circle class="dot c{}" cx="{:.1f}" cy="{:.1f}" r="2.5"/><circle class="hit" cx="{:.1f}" cy="{:.1f}" r="8"><title>{}, {} {}: {}</title></circle>)",
        curve.colour, frame.at_x(point.x), frame.at_y(point.y), frame.at_x(point.x), frame.at_y(point.y),
        xml_text(curve.name), xml_text(frame.x_title), short_number(point.x), fmt::format("{:.6g}", point.y));
  }
  return svg;
}

// Over all curves, of which one has a point.
template <typename Of>
Axis axis_over(const std::vector<Curve>& curves, Of of, const AxisOptions& options) {
  double low = of(curves.front().points.front()), high = low;
  for (const Curve& curve : curves) {
    for (const CurvePoint& point : curve.points) {
      low = std::min(low, of(point));
      high = std::max(high, of(point));
    }
  }
  return make_axis(low, high, options);
}

}  // namespace

std::string draw(const LineChart& chart) {
  std::vector<Curve> curves = chart.curves;
  std::erase_if(curves, [](const Curve& curve) { return curve.points.empty(); });
  if (curves.empty()) return "";
  const PlotFrame frame{.title = chart.title,
                        .x_title = chart.x_title,
                        .y_title = chart.y_title,
                        .x = axis_over(
                            curves, [](const CurvePoint& point) { return point.x; }, chart.x),
                        .y = axis_over(
                            curves, [](const CurvePoint& point) { return point.y; }, chart.y)};
  std::string data;
  std::vector<Label> labels;
  for (const Curve& curve : curves) {
    data += draw_curve(frame, curve);
    const double last = curve.points.back().y;
    labels.push_back({.text = curve.name + " " + short_number(last), .colour = curve.colour, .y = last});
  }
  return frame.draw(data, std::move(labels));
}

}  // namespace headrace::tools
