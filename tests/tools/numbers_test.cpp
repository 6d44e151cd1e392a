// Numbers as options take them; tests/tools/wrong_values.h has those that are refused.
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

std::string last_text_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of('\n') + 1, begin = text.rfind('\n', end - 1);
  return text.substr(begin + 1, end - begin - 1);
}

TEST(Numbers, AreReadAsTheyAreWritten) {
  const auto final_digest = [](const std::string& seed) {
    return last_text_line(headrace({"digest", "--pipeline", "trivial", "--seed", seed}).output);
  };
  const std::string eight = final_digest("8");
  EXPECT_NE(eight, "");
  EXPECT_EQ(final_digest("08"), eight);
}

TEST(Numbers, AreDecimal) {
  const auto identity = [](const char* batch) {
    return headrace({"digest", "--pipeline", "trivial", "--global-batch", batch}).output;
  };
  EXPECT_EQ(identity("0100000"), identity("100000"));
  EXPECT_EQ(identity("+100000"), identity("100000"));
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
