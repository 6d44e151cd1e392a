// What --help says of each command: in its own words, not in those of the parser, and on lines that fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "headrace/tests/tools/command_help.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

TEST(Help, SpeaksToWhoeverReadsIt) {
  const std::vector<CommandPath> commands = all_commands();
  EXPECT_THAT(commands, IsSupersetOf<CommandPath>({{"train"}, {"predict"}, {"bench", "input"}, {"report"}}));
  for (const std::vector<std::string>& command : commands) {
    std::vector<std::string> arguments = command;
    arguments.emplace_back("--help");
    const CommandResult result = headrace(arguments);
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.output, HasSubstr("\nUsage: headrace"));
    for (const char* of_parser : {"INT", "TEXT", "FLOAT", " in [", "POSITIVE", "REQUIRED", "Excludes", "Needs"}) {
      EXPECT_THAT(result.output, Not(HasSubstr(of_parser)));
    }
    std::size_t longest = 0, start = 0;
    for (std::size_t end; (end = result.output.find('\n', start)) != std::string::npos; start = end + 1) {
      longest = std::max(longest, end - start);
    }
    EXPECT_LE(longest, 100U) << result.output;
  }
  const std::string text = headrace({"digest", "--help"}).output;
  EXPECT_THAT(text, HasSubstr("Usage: headrace digest [OPTIONS]\n"));
  EXPECT_THAT(text,
              HasSubstr("  --prefetch N            batches made ahead of the consumer; 0 to 1024; default 2\n"));
  EXPECT_THAT(text, HasSubstr("  --seed N                the seed of all randomness; default 0\n"));
}

}  // namespace
}  // namespace headrace::test
