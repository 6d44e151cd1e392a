// What --help says of each command: in its own words, not in those of the parser, and on lines that fit.
#include <regex>

#include "headrace/tests/tools/headrace_command.h"
#include "headrace/tools/output/print.h"

namespace headrace::test {
namespace {

using ::testing::IsSupersetOf;

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
  EXPECT_THAT(text, HasSubstr("  --seed N                the seed of everything random in the plan; default 0\n"));
}

// Every variable that the product reads, and every status that it ends with.
TEST(Help, NamesStatusesAndVariables) {
  std::set<std::string> read;
  const std::regex variable("\"(HEADRACE_[A-Z_]+)\"");
  for (const char* floor : {"devices", "cache", "pipeline", "train", "tools"}) {
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(std::filesystem::path(HEADRACE_SOURCE_DIR) / floor)) {
      if (file.path().extension() != ".cpp" && file.path().extension() != ".h") continue;
      std::ifstream stream(file.path());
      const std::string text{std::istreambuf_iterator<char>(stream), {}};
      for (std::sregex_iterator at(text.begin(), text.end(), variable); at != std::sregex_iterator(); ++at)
        read.insert((*at)[1]);
    }
  }
  read.erase("HEADRACE_TEST_DEVICES");
  EXPECT_GT(read.size(), 10U);
  const std::string help = headrace({"--help"}).output;
  const std::string page =
      std::regex_replace(headrace({"shell", "--for", "man"}).output, std::regex("\\\\-"), "-");
  for (const std::string& name : read) {
    EXPECT_THAT(help, AnyOf(HasSubstr("\n    " + name + " "), HasSubstr("\n    " + name + "\n")));
    EXPECT_THAT(page, HasSubstr(".B " + name + "\n"));
  }
  for (const int status : {0, tools::kRunFailed, tools::kWrongUsage, tools::kRestart}) {
    EXPECT_THAT(help, HasSubstr("\n    " + std::to_string(status) + " "));
    EXPECT_THAT(page, HasSubstr("\n.B " + std::to_string(status) + "\n"));
  }
}

}  // namespace
}  // namespace headrace::test
