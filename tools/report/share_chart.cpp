#include "headrace/tools/report/share_chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "headrace/tools/report/number_text.h"
#include "headrace/tools/report/plot_frame.h"
#include "headrace/tools/report/xml_text.h"

namespace headrace::tools {
namespace {

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
std::string draw_sample(const PlotFrame& frame, const ShareChart& chart, const ShareSample& sample) {
  const double left = frame.at_x(sample.begin), right = frame.at_x(sample.end);
  std::string svg, text = fmt::format("{} to {}", duration(sample.begin), duration(sample.end));
  double below = 0;
  for (std::size_t k = 0; k < chart.names.size(); ++k) {
    text += fmt::format("; {} {}", chart.names[k], percent(sample.shares[k]));
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

}  // namespace

std::string draw(const ShareChart& chart) {
  if (chart.samples.empty()) return "";
  const std::vector<ShareSample> samples = fewer(chart.samples);
  double highest = kMinHighest;
  for (const ShareSample& sample : samples) highest = std::max(highest, std::min(1.0, sum_of(sample)));
  const PlotFrame frame{.title = chart.title,
                        .x_title = chart.x_title,
                        .y_title = chart.y_title,
                        .x = make_axis(0, samples.back().end, {.from_zero = true}),
                        .y = make_axis(0, 100 * highest, {.from_zero = true})};
  std::string data;
  for (const ShareSample& sample : samples) data += draw_sample(frame, chart, sample);
  const ShareSample mean = mean_of(chart.samples, 0, chart.samples.size());
  std::vector<Label> labels;
  double below = 0;
  for (std::size_t k = 0; k < chart.names.size(); ++k) {
    labels.push_back({.text = chart.names[k] + " " + percent(mean.shares[k]),
                      .colour = static_cast<int>(k),
                      .y = 100 * (below + mean.shares[k] / 2)});
    below += mean.shares[k];
  }
  std::ranges::reverse(labels);  // where two lie at one height, as in the stack
  return frame.draw(data, std::move(labels));
}

}  // namespace headrace::tools
