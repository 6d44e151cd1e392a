// What is measured for a while: how long that takes, what it says at its end.
#include <nlohmann/json.hpp>

#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

TEST(Seconds, ABenchTakesThoseItIsGiven) {
  const Stopwatch watch;
  const CommandResult result =
      run_command({HEADRACE_BINARY, "bench", "input", "--pipeline", "trivial", "--seconds", "1.5"});
  const double seconds = watch.seconds();
  EXPECT_EQ(result.errors, "") << "no progress where there is no terminal";
  EXPECT_THAT(result.output, ContainsRegex("memory [0-9]+ MB, [0-9]+ MB at its peak\n"));
  EXPECT_GE(seconds, 1.4);
  EXPECT_LE(seconds, 5) << "a busy machine may take longer to start it";
}

TEST(Seconds, AnExplanationTakesThoseItIsGiven) {
  const Stopwatch watch;
  json_of({"explain", "--pipeline", "trivial", "--seconds", "1.5"});
  EXPECT_GE(watch.seconds(), 1.4);
  EXPECT_LE(watch.seconds(), 5);
}

TEST(Seconds, ABenchTellsItsMemory) {
  const nlohmann::json line =
      json_of({"bench", "input", "--pipeline", "trivial", "--seconds", "0.2", "--warm-up", "5"}).front();
  EXPECT_GT(line["rss_mb"], 1);
  EXPECT_GE(line["peak_rss_mb"], line["rss_mb"]);
  EXPECT_EQ(line["warmed_up"], true);
}

TEST(Ledger, EndsWithItsVerdict) {
  const std::vector<std::string> check{"ledger", "--pipeline", "trivial", "--global-batch", "100000", "--check"};
  const nlohmann::json verdict = json_of(check).back();
  EXPECT_EQ(verdict, nlohmann::json::parse(R"({"final": true, "ok": true, "records": 1048576, "epochs": 1,
                                               "replicas": 1, "bad_records": 0})"));
  std::vector<std::string> command = check;
  command.insert(command.begin(), HEADRACE_BINARY);
  EXPECT_EQ(run_command(command).output, "exactly once: 1,048,576 records in 1 epoch over 1 replica\n");
}

}  // namespace
}  // namespace headrace::test
