#include "headrace/tools/output/json_lines.h"
#include "headrace/tests/support/command.h"
#include "headrace/tests/support/test.h"
#include "headrace/tools/pipelines/pipelines.h"

namespace headrace::tools {
namespace {

std::string described(std::int64_t global, int replicas) {
  return local_batch(make_pipeline("trivial", {}), global, replicas).describe();
}

TEST(LocalBatch, IsSaidForEachReplica) {
  EXPECT_EQ(described(512, 8), "batch: 512 examples, 64 on each of 8 replicas");
  EXPECT_EQ(described(10, 4), "batch: 10 examples, 2 or 3 on each of 4 replicas");
  EXPECT_EQ(described(3, 4), "batch: 3 examples, 0 or 1 on each of 4 replicas");
  EXPECT_EQ(described(1, 1), "batch: 1 example");
  EXPECT_EQ(described(2'000'000, 2), "batch: 1,048,576 examples, 524,288 on each of 2 replicas")
      << "all there are";
}

TEST(LocalBatch, IsPrintedByTheCommands) {
  const auto output = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), HEADRACE_BINARY);
    arguments.insert(arguments.end(), {"--pipeline", "trivial", "--replicas", "3", "--global-batch", "64"});
    const test::CommandResult result = test::run_command(arguments);
    EXPECT_EQ(result.status, 0) << result.errors;
    return result.output;
  };
  const std::string line = "\nbatch: 64 examples, 21 or 22 on each of 3 replicas\n";
  EXPECT_NE(output({"explain"}).find(line), std::string::npos);
  EXPECT_NE(output({"bench", "input", "--seconds", "0.1"}).find(line), std::string::npos);
  EXPECT_NE(output({"bench", "input", "--seconds", "0.1", "--json", "-"}).find("\"local_batch\":22"),
            std::string::npos);
}

}  // namespace
}  // namespace headrace::tools
