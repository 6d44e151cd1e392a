// Every function that a message names to a C program is in <headrace/headrace.h>, every option there or in the
// pages of plans.
#include <headrace/headrace.h>
#include <regex>

#include "headrace/devices/base/reader_words.h"
#include "headrace/tests/support/data.h"
#include "headrace/tests/support/message_names.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// What a program in C can read of names.
std::string c_pages() {
  std::string text = text_of(source_file("pipeline/PLAN.md")) + text_of(source_file("pipeline/PARTS.md"));
  for (const auto& entry : std::filesystem::directory_iterator(source_file("bindings/c"))) {
    if (entry.path().extension() == ".h") text += text_of(entry.path());
  }
  return text;
}

TEST(COptionNames, AreInThePages) {
  ASSERT_EQ(hr_devices_open(nullptr, nullptr), HR_INVALID_ARGUMENT) << "from a call on, messages speak C";
  const std::string pages = c_pages();
  const std::regex identifier("[a-z_][a-z_0-9]+");
  int named_in_c = 0;
  for (const std::string& name : names_in_messages({"devices", "cache", "pipeline"})) {
    const std::string words = named(name);
    named_in_c += words.empty() ? 0 : 1;
    EXPECT_THAT(words, Not(HasSubstr("::")));
    for (std::sregex_iterator at(words.begin(), words.end(), identifier), end; at != end; ++at) {
      EXPECT_TRUE(std::regex_search(pages, std::regex("\\b" + at->str() + "\\b"))) << name << ": " << words;
    }
  }
  EXPECT_GT(named_in_c, 25);
}

TEST(COptionNames, AreThoseOfJson) {
  hr_devices_open(nullptr, nullptr);
  EXPECT_EQ(named("LoaderOptions::threads", "3"), "threads = 3");
  EXPECT_EQ(named("ErrorPolicy::on_error", "skip"), "on_error = skip");
  EXPECT_EQ(named("PlanOptions::allow_paths", "false"), "allow_paths = false");
  EXPECT_EQ(named("pulled()"), "hr_dataset_from_calls()");
  EXPECT_EQ(named("FitOptions::steps_per_epoch"), "") << "there is no trainer in C";
}

}  // namespace
}  // namespace headrace::test
