// Charts as SVG: where points lie, what is left out, what labels say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <string>
#include <vector>

#include "headrace/tools/report/chart.h"
#include "headrace/tools/report/plot_frame.h"

namespace headrace::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> all_of(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) {
    found.push_back((*at)[1]);
  }
  return found;
}

Chart chart_of(std::vector<Curve> curves) {
  return {.title = "loss", .x_title = "epoch", .y_title = "loss", .curves = std::move(curves)};
}

TEST(Curves, PutsPointsWhereTheAxesSay) {
  const std::string svg = draw(chart_of({{.name = "train", .points = {{0, 0}, {1, 0.5}, {2, 1}}}}));
  EXPECT_THAT(svg, HasSubstr(R"( d="M48.0,190.0L174.0,108.0L300.0,26.0")"));
  EXPECT_THAT(svg, HasSubstr("train, epoch 1.00: 0.5")) << "the tooltip of a point";
  EXPECT_THAT(svg, HasSubstr(">train 1.00</text>")) << "the label at the end";
}

TEST(Curves, BreaksALineWhereValuesAreMissing) {
  const std::string svg = draw(chart_of({{.name = "val", .points = {{0, 0}, {1, 1}, {3, 1, false}, {4, 0}}}}));
  EXPECT_THAT(all_of(svg, R"re(class="line c0" d="([^"]*)")re"),
              ElementsAre("M48.0,190.0L111.0,26.0M237.0,26.0L300.0,190.0"));
}

TEST(Curves, IsEmptyWithoutPoints) {
  EXPECT_EQ(draw(chart_of({})), "");
  EXPECT_EQ(draw(chart_of({{.name = "val", .points = {}}})), "");
  EXPECT_THAT(draw(chart_of({{.name = "train", .points = {{1, 1}}}, {.name = "val", .points = {}}})),
              Not(HasSubstr("val")));
}

TEST(Curves, ThinsManyPointsAndKeepsTheirExtremes) {
  std::vector<CurvePoint> points;
  for (int i = 0; i <= 100'000; ++i) points.push_back({static_cast<double>(i), 0.5});
  points[33'333].y = 1;
  points[77'777].y = 0;
  const std::string svg = draw(chart_of({{.name = "train", .points = points}}));
  EXPECT_LT(svg.size(), 20'000U);
  EXPECT_THAT(svg, HasSubstr(",26.0L")) << "the highest";
  EXPECT_THAT(svg, HasSubstr(",190.0L")) << "the lowest";
}

TEST(Curves, MovesLabelsApart) {
  const std::string svg = draw(chart_of({{.name = "a", .points = {{0, 0}, {1, 1}}},
                                         {.name = "b", .points = {{0, 0}, {1, 1}}, .colour = 1},
                                         {.name = "c", .points = {{0, 0}, {1, 0.99}}, .colour = 2}}));
  const auto places = all_of(svg, R"re(class="name" x="[^"]*" y="([^"]*)")re");
  ASSERT_EQ(places.size(), 3U);
  for (std::size_t i = 1; i < 3; ++i) EXPECT_GE(std::stod(places[i]) - std::stod(places[i - 1]), 13.9);
}

TEST(Curves, EscapesNames) {
  const std::string svg = draw(chart_of({{.name = "a<b & \"c\"", .points = {{0, 0}, {1, 1}}}}));
  EXPECT_THAT(svg, HasSubstr("a&lt;b &amp; &quot;c&quot;"));
  EXPECT_THAT(svg, Not(HasSubstr("a<b")));
}

Chart two_shares(std::vector<ShareSample> samples) {
  return {.title = "waits",
          .x_title = "s",
          .y_title = "%",
          .share_names = {"input", "copies"},
          .samples = std::move(samples)};
}

TEST(Shares, StacksSharesAndNamesTheirMeans) {
  const std::string svg = draw(
      two_shares({{.begin = 0, .end = 1, .shares = {0.25, 0.5}}, {.begin = 3, .end = 4, .shares = {0.75, 0}}}));
  EXPECT_THAT(svg, HasSubstr(">input 50 %</text>"));
  EXPECT_THAT(svg, HasSubstr(">copies 25 %</text>"));
  // Of 80 %: the second share lies on the first one, a share of nothing is not drawn.
  EXPECT_THAT(all_of(svg, R"re(class="area c0" x="[^"]*" y="([^"]*)")re"), ElementsAre("138.8", "36.2"));
  EXPECT_THAT(all_of(svg, R"re(class="area c1" x="[^"]*" y="([^"]*)")re"), ElementsAre("36.2"));
}

TEST(Shares, DrawsManySamplesAsTheirMeans) {
  std::vector<ShareSample> samples;
  for (int i = 0; i < 10'000; ++i) {
    samples.push_back({.begin = i * 1.0, .end = i + 1.0, .shares = {i % 2 == 0 ? 0.2 : 0.4, 0}});
  }
  const std::string svg = draw(two_shares(samples));
  const auto heights = all_of(svg, R"re(class="area c0" [^>]*height="([^"]*)")re");
  EXPECT_LE(heights.size(), 300U);
  for (const std::string& height : heights) EXPECT_NEAR(std::stod(height), std::stod(heights.front()), 3);
  EXPECT_THAT(svg, HasSubstr(">input 30 %</text>"));
}

TEST(Shares, KeepsToItsFrameWhereSharesExceedTheWhole) {
  const std::string svg = draw(two_shares({{.begin = 0, .end = 1, .shares = {0.9, 0.9}}}));
  for (const std::string& top : all_of(svg, R"re(class="area c." x="[^"]*" y="([^"]*)")re")) {
    EXPECT_GE(std::stod(top), PlotFrame::kTop);
  }
  EXPECT_EQ(draw(two_shares({})), "");
}

}  // namespace
}  // namespace headrace::tools
