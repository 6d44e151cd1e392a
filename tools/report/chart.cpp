#include "headrace/tools/report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>

#include "headrace/tools/report/number_text.h"
#include "headrace/tools/report/plot_frame.h"
#include "headrace/tools/report/xml_text.h"

namespace headrace::tools {
namespace {

PlotFrame frame_of(const Chart& chart, const Axis& x, const Axis& y) {
  return {.title = chart.title, .x_title = chart.x_title, .y_title = chart.y_title, .x = x, .y = y};
}

constexpr std::size_t kMaxPoints = 400, kMaxDots = 40;

// Returns the lowest and the highest point of each stretch, in order, and the first and the last point.
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

std::string draw_lines(const Chart& chart, const std::vector<Curve>& curves) {
  double left = std::numeric_limits<double>::infinity(), right = -left, low = left, high = -left;
  for (const Curve& curve : curves) {
    for (const CurvePoint& point : curve.points) {
      left = std::min(left, point.x), right = std::max(right, point.x);
      low = std::min(low, point.y), high = std::max(high, point.y);
    }
  }
  const PlotFrame frame = frame_of(chart, make_axis(left, right, chart.x), make_axis(low, high, chart.y));
  std::string data;
  std::vector<Label> labels;
  for (const Curve& curve : curves) {
    data += draw_curve(frame, curve);
    const double last = curve.points.back().y;
    labels.push_back({.text = curve.name + " " + short_number(last), .colour = curve.colour, .y = last});
  }
  return frame.draw(data, std::move(labels));
}

constexpr std::size_t kMaxSamples = 270;  // one for each of the chart's own pixels
constexpr double kMinHighest = 0.05;      // so that a little noise does not fill the chart

double span_of(const ShareSample& sample) { return std::max(0.0, sample.end - sample.begin); }

// Over the time that was sampled; one mean a name.
ShareSample mean_of(const std::vector<ShareSample>& samples, std::size_t begin, std::size_t end) {
  ShareSample mean{.begin = samples[begin].begin,
                   .end = samples[end - 1].end,
                   .shares = std::vector<double>(samples[begin].shares.size())};
  double time = 0;
  for (std::size_t i = begin; i < end; ++i) {
    time += span_of(samples[i]);
    for (std::size_t k = 0; k < mean.shares.size(); ++k) {
      mean.shares[k] += span_of(samples[i]) * samples[i].shares[k];
    }
  }
  for (double& share : mean.shares) share = time > 0 ? share / time : 0;
  return mean;
}

std::vector<ShareSample> fewer(const std::vector<ShareSample>& samples) {
  if (samples.size() <= kMaxSamples) return samples;
  std::vector<ShareSample> few;
  for (std::size_t i = 0; i < kMaxSamples; ++i) {
    few.push_back(mean_of(samples, i * samples.size() / kMaxSamples, (i + 1) * samples.size() / kMaxSamples));
  }
  return few;
}

double sum_of(const ShareSample& sample) {
  return std::accumulate(sample.shares.begin(), sample.shares.end(), 0.0);
}

// In percent, as the axis is.
std::string draw_sample(const PlotFrame& frame, const std::vector<std::string>& names, const ShareSample& sample) {
  const double left = frame.at_x(sample.begin), right = frame.at_x(sample.end);
  std::string svg, text = fmt::format("{} to {}", duration(sample.begin), duration(sample.end));
  double below = 0;
  for (std::size_t k = 0; k < names.size(); ++k) {
    text += fmt::format("; {} {}", names[k], percent(sample.shares[k]));
    const double above = std::min(100.0, below + 100 * std::max(0.0, sample.shares[k]));
    if (above > below) {
      svg +=
          fmt::format(R"(<rect class="area c{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"/>)", k, left,
                      frame.at_y(above), std::max(0.6, right - left), frame.at_y(below) - frame.at_y(above));
    }
    below = above;
  }
  return fmt::format(
      R"(<g>{}<rect class="hit" x="{:.1f}" y="{}" width="{:.1f}" height="{}"><title>{}</title></rect></g>)", svg,
      left, PlotFrame::kTop, std::max(0.6, right - left), PlotFrame::kBottom - PlotFrame::kTop, xml_text(text));
}

std::string draw_stack(const Chart& chart) {
  const std::vector<ShareSample> samples = fewer(chart.samples);
  double highest = kMinHighest;
  for (const ShareSample& sample : samples) highest = std::max(highest, std::min(1.0, sum_of(sample)));
  const PlotFrame frame = frame_of(chart, make_axis(0, samples.back().end, {.from_zero = true}),
                                   make_axis(0, 100 * highest, {.from_zero = true}));
  std::string data;
  for (const ShareSample& sample : samples) data += draw_sample(frame, chart.share_names, sample);
  const ShareSample mean = mean_of(chart.samples, 0, chart.samples.size());
  std::vector<Label> labels;
  double below = 0;
  for (std::size_t k = 0; k < chart.share_names.size(); ++k) {
    labels.push_back({.text = chart.share_names[k] + " " + percent(mean.shares[k]),
                      .colour = static_cast<int>(k),
                      .y = 100 * (below + mean.shares[k] / 2)});
    below += mean.shares[k];
  }
  std::ranges::reverse(labels);  // where two lie at one height, as in the stack
  return frame.draw(data, std::move(labels));
}

}  // namespace

std::string draw(const Chart& chart) {
  if (!chart.samples.empty()) return draw_stack(chart);
  std::vector<Curve> curves = chart.curves;
  std::erase_if(curves, [](const Curve& curve) { return curve.points.empty(); });
  return curves.empty() ? "" : draw_lines(chart, curves);
}

}  // namespace headrace::tools
