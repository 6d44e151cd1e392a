#include "headrace/tools/report/plot_frame.h"

#include <fmt/format.h>

#include <algorithm>

#include "headrace/tools/report/xml_text.h"

namespace headrace::tools {
namespace {

constexpr double kLabelHeight = 14;

std::string grid(const PlotFrame& frame) {
  std::string svg;
  for (const double tick : frame.y.ticks) {
    const double y = frame.at_y(tick);
    svg += fmt::format(R"(<line class="grid" x1="{}" x2="{}" y1="{:.1f}" y2="{:.1f}"/>)", PlotFrame::kLeft,
                       PlotFrame::kRight, y, y);
    svg += fmt::format(R"(<text class="tick" x="{}" y="{:.1f}" text-anchor="end">{}</text>)", PlotFrame::kLeft - 5,
                       y + 4, frame.y.label(tick));
  }
  for (const double tick : frame.x.ticks) {
    const double x = frame.at_x(tick);
    svg += fmt::format(R"(<line class="mark" x1="{:.1f}" x2="{:.1f}" y1="{}" y2="{}"/>)", x, x, PlotFrame::kBottom,
                       PlotFrame::kBottom + 4);
    svg += fmt::format(R"(<text class="tick" x="{:.1f}" y="{}" text-anchor="middle">{}</text>)", x,
                       PlotFrame::kBottom + 17, frame.x.label(tick));
  }
  return svg;
}

std::string titles(const PlotFrame& frame) {
  return fmt::format(
      R"(<text class="axis" x="4" y="14">{}</text><text class="axis" x="{}" y="{}" text-anchor="middle">{}</text>)",
      xml_text(frame.y_title), (PlotFrame::kLeft + PlotFrame::kRight) / 2, PlotFrame::kBottom + 35,
      xml_text(frame.x_title));
}

// From the top down, none nearer than its height to the next, all within the frame.
void move_apart(std::vector<Label>& labels) {
  std::ranges::stable_sort(labels, {}, &Label::y);
  double free = PlotFrame::kTop;
  for (Label& label : labels) free = (label.y = std::max(label.y, free)) + kLabelHeight;
  double limit = PlotFrame::kBottom;
  for (auto label = labels.rbegin(); label != labels.rend(); ++label) {
    limit = (label->y = std::min(label->y, limit)) - kLabelHeight;
  }
}

std::string names(const PlotFrame& frame, std::vector<Label> labels) {
  for (Label& label : labels) label.y = frame.at_y(label.y);
  move_apart(labels);
  std::string svg;
  for (const Label& label : labels) {
    svg += fmt::format(
        R"(<circle class="dot c{}" cx="{}" cy="{:.1f}" r="4"/><text class="name" x="{}" y="{:.1f}">{}</text>)",
        label.colour, PlotFrame::kRight + 8, label.y, PlotFrame::kRight + 16, label.y + 4, xml_text(label.text));
  }
  return svg;
}

}  // namespace

std::string PlotFrame::draw(std::string_view data, std::vector<Label> labels) const {
  return fmt::format(
             R"(<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {} {}" role="img"><title>{}</title>)",
             kWidth, kHeight, xml_text(title)) +
         grid(*this) + std::string(data) + titles(*this) + names(*this, std::move(labels)) + "</svg>\n";
}

std::string place(double x, double y) { return fmt::format("{:.1f},{:.1f}", x, y); }

}  // namespace headrace::tools
