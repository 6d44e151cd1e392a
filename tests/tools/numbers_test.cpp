// Numbers beyond their limits: refused in one line that names the option and its range, never wrapped around.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "headrace/tests/support/temp_folder.h"
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

std::string last_text_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n') + 1, begin = text.rfind('\n', end - 1);
  return text.substr(begin + 1, end - begin - 1);
}

struct Refused {
  std::vector<std::string> arguments;
  std::string words;
};

TEST(Numbers, BeyondTheirLimitsAreRefusedInWords) {
  const std::vector<std::string> digest{"digest", "--pipeline", "trivial"},
      train{"train", "--recipe", "mnist-mlp"};
  const std::vector<Refused> table{
      {{"--seed", "-1"}, "--seed -1: must be a whole number from 0 to 18446744073709551615"},
      {{"--seed", "18446744073709551616"}, "--seed 18446744073709551616: is too large"},
      {{"--seed", "1.5"}, "--seed 1.5: must be a whole number"},
      {{"--seed", "12abc"}, "--seed 12abc: is not a number"},
      {{"--start-step", "-1"}, "--start-step -1: must be at least 0"},
      {{"--start-step", "9223372036854775808"}, "--start-step 9223372036854775808: must be between"},
      {{"--start-step", "1000000"}, "--start-step 1000000 is past the end"},
      {{"--epochs", "0"}, "--epochs 0: must be at least 1"},
      {{"--epochs", "4294967297"}, "--epochs 4294967297: must be between"},
      {{"--epochs", "99999999999999999999"}, "--epochs 99999999999999999999: is too large"},
      {{"--threads", "100000"}, "--threads 100000: must be between 0 and 1024"},
      {{"--threads", "4294967297"}, "--threads 4294967297: is too large: the maximum is 1024"},
      {{"--prefetch", "1025"}, "--prefetch 1025: must be between 0 and 1024"},
      {{"--prefetch", "-1"}, "--prefetch -1: must be between 0 and 1024"},
      {{"--replicas", "1000000"}, "--replicas 1000000: must be between 1 and 1023"},
      {{"--global-batch", "0"}, "--global-batch 0: must be at least 1"},
      {{"--global-batch", "9223372036854775808"}, "--global-batch 9223372036854775808: is too large"},
      {{"--global-batch", "-5"}, "--global-batch -5: must be at least 1"},
  };
  for (const Refused& row : table) {
    std::vector<std::string> arguments = digest;
    arguments.insert(arguments.end(), row.arguments.begin(), row.arguments.end());
    const CommandResult result = headrace(arguments);
    EXPECT_EQ(result.status, 2) << row.words << "\n" << result.errors;
    EXPECT_NE(result.errors.find(row.words), std::string::npos) << result.errors;
    EXPECT_EQ(result.output, "");
  }
  for (const char* option : {"--steps-per-epoch", "--stop-after-steps", "--headspace", "--accumulate", "--runs"}) {
    for (const char* value : {"-1", "99999999999999999999"}) {
      std::vector<std::string> arguments = train;
      arguments.insert(arguments.end(), {option, value});
      const CommandResult result = headrace(arguments);
      EXPECT_EQ(result.status, 2) << option;
      EXPECT_NE(result.errors.find(std::string(option) + " " + value + ": "), std::string::npos) << result.errors;
    }
  }
}

TEST(Numbers, AreReadAsTheyAreWritten) {
  const auto final_digest = [](const std::string& seed) {
    return last_text_line(headrace({"digest", "--pipeline", "trivial", "--seed", seed}).output);
  };
  const std::string eight = final_digest("8");
  EXPECT_NE(eight, "");
  EXPECT_EQ(final_digest("08"), eight);
}

TEST(Numbers, ABatchBeyondTheDataIsTheWholeData) {
  const auto final_digest = [](const std::string& global, const std::string& replicas) {
    const CommandResult result =
        headrace({"digest", "--pipeline", "trivial", "--global-batch", global, "--replicas", replicas});
    EXPECT_EQ(result.status, 0) << result.errors;
    return last_text_line(result.output);
  };
  const std::string whole = final_digest("1048576", "1");
  for (const char* global : {"1048577", "1000000000000", "2305843009213693952", "9223372036854775807"}) {
    EXPECT_EQ(final_digest(global, "3"), whole) << global;
  }
}

}  // namespace
}  // namespace headrace::test
