#include "headrace/tools/report/pipeline_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace headrace::tools {
namespace {

using testing::HasSubstr;
using testing::Not;

nlohmann::json stage(const std::string& name, const std::string& kind, int threads, int items, double ns) {
  return {{"name", name},      {"stage_kind", kind}, {"threads", threads}, {"items", items},
          {"ns_per_item", ns}, {"occupancy", 0.25},  {"wait_p50_us", 1.5}, {"wait_p99_us", 900}};
}

nlohmann::json example_input() {
  return {{"examples", 1000},
          {"stages",
           {stage("assemble", "assemble", 1, 1000, 200), stage("decode", "decode", 2, 500, 80'000),
            stage("crop, flip", "operate", 2, 1000, 10'000), stage("consumer", "consume", 4, 1000, 1e6)}},
          {"verdict", {{"bottleneck", "decode"}}}};
}

TEST(PipelinePicture, SaysWhatEachStageCouldDoAlone) {
  const std::string html = draw_pipeline(example_input());
  EXPECT_THAT(html, HasSubstr(">5.00M/s</text>")) << "assemble: one thread, 200 ns";
  EXPECT_THAT(html, HasSubstr(">25.0k/s</text>")) << "decode: two threads, 80 us";
  EXPECT_THAT(html, HasSubstr(">4.00k/s</text>")) << "consumer: four replicas, 1 ms";
  EXPECT_THAT(html, HasSubstr(">busy 25 %, 2 threads</text>"));
  EXPECT_THAT(html, HasSubstr("waited 1.50 µs at the median, 900 µs at the 99th percentile"));
}

// Half of the examples are decoded: two threads spend 50 us on each example delivered.
TEST(PipelinePicture, FramesStagesThatShareThreads) {
  const std::string html = draw_pipeline(example_input());
  EXPECT_THAT(html, HasSubstr("2 threads for these stages: together 40.0k/s"));
  const std::size_t begin = html.find("<div class=\"shared\">"), end = html.find("</div>", begin);
  const std::string frame = html.substr(begin, end - begin);
  EXPECT_THAT(frame, HasSubstr("decode:"));
  EXPECT_THAT(frame, HasSubstr("crop, flip:"));
  EXPECT_THAT(frame, Not(HasSubstr("assemble:")));
  EXPECT_THAT(frame, Not(HasSubstr("consumer:")));
}

TEST(PipelinePicture, MarksTheStageThatLimits) {
  const std::string html = draw_pipeline(example_input());
  const std::size_t mark = html.find(">limits</text>");
  ASSERT_NE(mark, std::string::npos);
  EXPECT_EQ(html.find(">limits</text>", mark + 1), std::string::npos);
  EXPECT_GT(mark, html.find(">decode</text>"));
  EXPECT_LT(mark, html.find(">crop, flip</text>"));
}

TEST(PipelinePicture, AStageWithoutWorkHasNoRate) {
  nlohmann::json input = example_input();
  input["stages"][1]["ns_per_item"] = 0;
  input["stages"][1]["items"] = 0;
  EXPECT_THAT(draw_pipeline(input), HasSubstr(">no work</text>"));
}

TEST(PipelinePicture, BreaksCutsAndEscapesNames) {
  nlohmann::json input = example_input();
  input["stages"][0]["name"] = "größe<ändern> und dann noch einmal & sehr lange weiter bis zum Ende";
  const std::string html = draw_pipeline(input);
  EXPECT_THAT(html, HasSubstr(">größe&lt;ändern&gt; und</text>"));
  EXPECT_THAT(html, HasSubstr(">dann noch einmal &amp;…</text>"));
  EXPECT_THAT(html, HasSubstr("sehr lange weiter bis zum Ende: ")) << "whole in the tooltip";
}

TEST(PipelinePicture, IsEmptyWithoutStages) {
  for (const char* text : {"null", "{}", R"({"stages": []})", R"({"stages": 3})"}) {
    EXPECT_EQ(draw_pipeline(nlohmann::json::parse(text)), "") << text;
  }
  EXPECT_THAT(draw_pipeline(nlohmann::json::parse(R"({"stages": [7, {"threads": "x"}], "verdict": 1})")),
              HasSubstr("no work"));
}

}  // namespace
}  // namespace headrace::tools
