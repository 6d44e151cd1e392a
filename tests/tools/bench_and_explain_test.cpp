// bench and explain: what they measure and what they say of it.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/tests/support/images.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

TEST(BenchCommand, ReportsItsKeys) {
  const Lines lines = json_of({"bench", "input", "--pipeline", "trivial", "--seconds", "0.2", "--threads", "1"});
  ASSERT_EQ(lines.size(), 1U);
  expect_keys(lines.front(), {"images_per_second", "threads", "p50_us", "p99_us", "first_batch_ms", "rss_mb"});
  EXPECT_GT(lines.front()["images_per_second"], 0);
}

// Twenty small photographs in two classes.
void write_photographs(const TempFolder& folder) {
  for (int i = 0; i < 20; ++i) {
    const Picture picture = make_picture(60, 80, 3, static_cast<std::uint64_t>(i));
    folder.write(fmt::format("train/{}/{}.jpg", i % 2 == 0 ? "cat" : "dog", i), encode_jpeg(picture));
  }
}

TEST(BenchCommand, MeasuresFirstPasses) {
  const TempFolder folder;
  write_photographs(folder);
  std::vector<std::string> command{
      "bench",     "input", "--pipeline",     "jpeg-train", "--data",      folder.path().string(),
      "--threads", "1",     "--global-batch", "8",          "--first-pass"};
  const nlohmann::json alone = json_of(command).front();
  EXPECT_GT(alone["images_per_second"], 0);
  EXPECT_GT(alone["p99_us"], 0) << "20 photographs are three batches";
  EXPECT_EQ(alone["first_pass"], true);
  EXPECT_FALSE(alone.contains("warmed_up"));
  command.emplace_back("--baseline");
  const nlohmann::json compared = json_of(command).front();
  EXPECT_EQ(compared["samples"]["headrace"].size(), 5U);
  EXPECT_EQ(compared["ratios"].size(), 5U);
  EXPECT_GT(compared["ratio"], 0);
}

TEST(ExplainCommand, NamesEveryStage) {
  const CommandResult result = run_command({HEADRACE_BINARY, "explain", "--pipeline", "trivial"});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_NE(result.output.find("integers"), std::string::npos);
  EXPECT_NE(result.output.find("batch"), std::string::npos);
  EXPECT_NE(result.output.find("conversion on the host: cpu:0"), std::string::npos) << result.output;
}

TEST(ExplainCommand, ReportsItsKeysAndItsVerdict) {
  const Lines lines = json_of({"explain", "--pipeline", "trivial", "--seconds", "0.3", "--threads", "1",
                               "--global-batch", "1000", "--consumer-us", "5000"});
  ASSERT_GT(lines.size(), 3U);
  int choices = 0;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const bool choice = lines[i].contains("choice");
    choices += choice ? 1 : 0;
    if (choice) {
      expect_keys(lines[i], {"choice", "value", "reason"});
    } else {
      expect_keys(lines[i], {"name", "ns_per_item", "occupancy", "wait_p50_us", "wait_p99_us"});
    }
  }
  EXPECT_EQ(choices, 2) << "threads and prefetch";
  const nlohmann::json& verdict = lines.back();
  expect_keys(verdict, {"bottleneck", "kind", "ceiling_images_per_second", "measured_images_per_second",
                        "wait_p50_us", "wait_p99_us", "ready_share", "sentence", "what_ifs"});
  EXPECT_EQ(verdict["bottleneck"], "consumer");
  EXPECT_EQ(verdict["kind"], "consumer");
  EXPECT_GT(verdict["ceiling_images_per_second"], 0);
  EXPECT_LE(verdict["ceiling_images_per_second"], 200'000);  // 1000 in 5 ms
  ASSERT_GE(verdict["what_ifs"].size(), 2U);
  for (const nlohmann::json& what_if : verdict["what_ifs"]) {
    expect_keys(what_if, {"what", "images_per_second", "bottleneck", "instead_of", "sentence"});
  }
}

TEST(ExplainCommand, TriesACacheWhereThereIsNone) {
  const TempFolder folder;
  write_photographs(folder);
  const auto tried = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"explain",   "--pipeline", "jpeg-train", "--data", folder.path().string(),
                                       "--seconds", "0.2",        "--threads",  "1",      "--global-batch",
                                       "4"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Lines lines = json_of(arguments);
    const nlohmann::json& what_if = lines.back()["what_ifs"].back();
    const std::string what = what_if["what"];
    EXPECT_GT(what_if["images_per_second"], 0) << what;
    return what;
  };
  // With as many of the 20 as there was time for.
  EXPECT_THAT(tried({}), MatchesRegex("every decoded sample in a cache, tried with [0-9]+ in memory"));
  const std::string there = (folder / "tried").string();
  EXPECT_THAT(tried({"--try-cache", there}),
              MatchesRegex("every decoded sample in a cache, tried with [0-9]+ in disk " + there));
  EXPECT_EQ(tried({"--cache", "memory"}), "batches that cost nothing to make") << "it has one already";
}

TEST(ExplainCommand, WritesATrace) {
  const TempFolder folder;
  const std::string path = (folder.path() / "trace.json").string();
  json_of({"explain", "--pipeline", "trivial", "--seconds", "0.2", "--threads", "2", "--trace", path});
  std::ifstream file(path);
  const nlohmann::json trace = nlohmann::json::parse(file);
  std::set<int> named, busy;
  for (const nlohmann::json& event : trace["traceEvents"]) {
    (event["ph"] == "M" ? named : busy).insert(event["tid"].get<int>());
  }
  EXPECT_EQ(named.size(), 4U);  // two compute threads, the assembler, the consumer
  EXPECT_TRUE(std::ranges::includes(named, busy));
  EXPECT_GE(busy.size(), 3U);  // a loaded machine may give one compute thread all the work
}

}  // namespace
}  // namespace headrace::test
