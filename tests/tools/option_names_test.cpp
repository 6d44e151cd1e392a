// Every option that a message names has its word on the command line, or is known to have none.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>
#include <string>

#include "headrace/tests/support/folder_contents.h"

namespace headrace::test {
namespace {

const std::filesystem::path kRoot = HEADRACE_SOURCE_DIR;

void add_matches(const std::string& text, const std::regex& pattern, std::set<std::string>& names) {
  for (std::sregex_iterator at(text.begin(), text.end(), pattern), end; at != end; ++at) names.insert((*at)[1]);
}

TEST(OptionNames, AreKnownToTheCommand) {
  std::set<std::string> named, known;
  const std::regex call(
      "(?:named|named_or|plan_of_numbered|check_range|MemoryBudget)\\(\\s*(?:plan_,\\s*)?\"([^\"]+)\""),
      member("(?:memory|pinned)\\(\"([^\"]+)\"");
  for (const std::string floor : {"devices", "cache", "pipeline", "train", "tools"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot / floor)) {
      const auto extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".h") continue;
      const std::string text = text_of(entry.path());
      if (text.find("reader_words.h") != std::string::npos) add_matches(text, call, named);
      if (entry.path().filename() == "run_plan.h") add_matches(text, member, named);
    }
  }
  EXPECT_GT(named.size(), 25U) << "the sources were not found";
  const std::string words = text_of(kRoot / "tools/options/command_words.cpp");
  add_matches(words, std::regex("OptionWord\\{\"([^\"]+)\""), known);
  add_matches(words, std::regex("name == \"([^\"]+)\""), known);
  for (const std::string& name : named) EXPECT_TRUE(known.contains(name)) << name << " has no word";
  for (const std::string& name : known) EXPECT_TRUE(named.contains(name)) << name << " is named nowhere";
}

}  // namespace
}  // namespace headrace::test
