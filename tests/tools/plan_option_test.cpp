// Plans from files, benchmarks and explanations.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "headrace/tests/support/images.h"
#include "headrace/tests/tools/headrace_command.h"
#include "headrace/tests/tools/recipes/small_data.h"

namespace headrace::test {
namespace {

// Plans in files, as the command writes and runs them.

class PlanOption : public ::testing::Test {
 protected:
  void SetUp() override { write_digits(folder_, 50); }

  std::string plan_file() const { return (folder_ / "plan.json").string(); }
  std::vector<std::string> named() const {
    return {"--pipeline", "mnist-train", "--data", folder_.path().string(), "--global-batch", "16"};
  }
  void write_plan(const std::vector<std::string>& pipeline) const {
    std::vector<std::string> arguments{"explain", "--write-plan", plan_file()};
    arguments.insert(arguments.end(), pipeline.begin(), pipeline.end());
    const CommandResult written = headrace(arguments);
    ASSERT_EQ(written.status, 0) << written.errors;
  }
  // What a command prints of the pipeline and of its plan.
  void expect_same(std::vector<std::string> command) const {
    const CommandResult of_name = headrace(command, named()), of_plan = headrace(command, {"--plan", plan_file()});
    EXPECT_EQ(of_plan.status, 0) << of_plan.errors;
    EXPECT_EQ(of_plan.output, of_name.output);
    EXPECT_NE(of_plan.output, "");
  }

  TempFolder folder_;
};

TEST_F(PlanOption, RunsWhatWasWritten) {
  write_plan(named());
  expect_same({"explain"});
  expect_same({"digest", "--epochs", "2", "--seed", "0"});
  expect_same({"ledger", "--replicas", "3"});
  const auto lines = json_of({"bench", "input", "--seconds", "0.1", "--plan", plan_file()});
  EXPECT_EQ(lines.back()["pipeline"], plan_file());
  EXPECT_EQ(lines.back()["global_batch"], 16);
}

TEST_F(PlanOption, KnowsTheCodeOfThePipelines) {
  write_plan({"--pipeline", "trivial", "--global-batch", "200000"});
  EXPECT_EQ(headrace({"digest", "--plan", plan_file()}).output,
            headrace({"digest", "--pipeline", "trivial", "--global-batch", "200000"}).output);
}

TEST_F(PlanOption, PathsBeginAtTheBase) {
  folder_.write("plan.json", R"({"headrace_plan": 2, "source": {"open": {"path": "."}},
      "stages": [{"map": [{"normalize": {"mean": [0], "std": [1]}}]}, {"batch": {"global_batch": 16}}]})");
  const CommandResult result =
      headrace({"explain", "--plan", plan_file(), "--plan-base", folder_.path().string()});
  EXPECT_EQ(result.status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("50 records"));
}

TEST_F(PlanOption, WrongPlansAreTold) {
  folder_.write("plan.json", R"({"headrace_plan": 2, "source": {"open": {"path": "x"}}, "stages": 3})");
  const auto wrong = [&](const std::vector<std::string>& arguments) {
    const CommandResult result = headrace(arguments);
    EXPECT_EQ(result.status, 2) << result.errors;
    return result.errors;
  };
  EXPECT_THAT(wrong({"digest"}), HasSubstr("neither --pipeline nor --plan is given"));
  EXPECT_THAT(wrong({"digest", "--plan", plan_file(), "--pipeline", "trivial"}),
              HasSubstr("cannot be given together"));
  for (const char* option : {"--data", "--split", "--global-batch", "--cache"}) {
    const std::string value = std::string(option) == "--split" ? "train" : "7";
    EXPECT_THAT(wrong({"digest", "--plan", plan_file(), option, value}), HasSubstr("cannot be given together"));
  }
  EXPECT_THAT(wrong({"bench", "input", "--plan", plan_file(), "--baseline"}),
              HasSubstr("cannot be given together"));
  EXPECT_THAT(wrong({"digest", "--plan", plan_file(), "--json", plan_file()}), HasSubstr("--plan"));
  folder_.write("plan.json", R"({"headrace_plan": 2, "source": {"tape": {}}})");
  EXPECT_THAT(wrong({"digest", "--plan", plan_file()}),
              HasSubstr("headrace: " + plan_file() + ": plan at source: there is no source \"tape\""));
  folder_.write("plan.json", R"({"headrace_plan": 2, "source": {"open": {"path": ")" + folder_.path().string() +
                                 R"("}}, "stages": []})");
  for (const std::string command : {"digest", "ledger", "explain"}) {
    EXPECT_THAT(
        wrong({command, "--plan", plan_file()}),
        HasSubstr(
            "headrace: " + plan_file() +
            ": the plan has no batches yet\n  hint: add the stage {\"batch\": {\"global_batch\": 32}} to it\n"));
  }
}

// A plan may come from a program: its reader need not know C++.
TEST_F(PlanOption, WrongPlansAreToldWithoutNamesOfCpp) {
  const std::string open = R"({"open": {"path": "."}})";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {R"("source": )" + open, R"(hint: add the stage {"batch": {"global_batch": 32}} to it)"},
      {R"("source": {"named": "data"})", "hint: run the plan in the program that has the code"},
      {R"("source": )" + open + R"(, "stages": [{"map": [{"named": "darker", "version": 1}]}])",
       "run the plan in the program that has the code"},
      {R"("source": )" + open + R"(, "stages": [{"padded_batch": {"global_batch": 2}}])", "hint: use batch()"},
      {R"("source": )" + open + R"(, "stages": [{"prefetch": {"batches": 2}}])",
       "hint: put prefetch() after batch()"},
      {R"("source": {"zip": {"parts": [{"source": )" + open + R"(}, {"source": )" + open + "}]}}",
       "hint: tell them apart with \"suffixes\": one a dataset"},
  };
  for (const auto& [plan, hint] : cases) {
    folder_.write("plan.json", R"({"headrace_plan": 2, )" + plan + "}");
    const CommandResult result =
        headrace({"digest", "--plan", plan_file(), "--plan-base", folder_.path().string()});
    EXPECT_EQ(result.status, 2) << plan;
    EXPECT_THAT(result.errors, HasSubstr(hint)) << plan;
    EXPECT_THAT(result.errors, Not(ContainsRegex("[A-Za-z]::|[{][.]|[ (][.][a-z_]+[(]|Loader"))) << plan;
  }
}

// bench and explain: what they measure and what they say of it.

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
