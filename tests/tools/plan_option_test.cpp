// Plans in files, as the command writes and runs them.
#include "headrace/tests/tools/headrace_command.h"
#include "headrace/tests/tools/recipes/small_data.h"

namespace headrace::test {
namespace {

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

}  // namespace
}  // namespace headrace::test
