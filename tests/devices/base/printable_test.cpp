#include "headrace/devices/base/printable.h"

#include <gtest/gtest.h>

#include <string>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

using namespace std::string_literals;

TEST(Printable, LeavesTextAsItIs) {
  for (const std::string text : {"", "train/cat/0001.jpg", "C:\\x1b", "Käse, 猫, 🐈", "a  b"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, WritesControlCharactersOut) {
  EXPECT_EQ(printable("e\033[31mvil"), "e\\x1b[31mvil");
  EXPECT_EQ(printable("two\nlines\tand\r"), "two\\nlines\\tand\\r");
  EXPECT_EQ(printable("a\0b\x7F"s), "a\\x00b\\x7f");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\u009b31m")
      << "a terminal's other escape";
  EXPECT_EQ(printable("cat\u202Egpj.exe"), "cat\\u202egpj.exe") << "turns the direction of writing";
}

TEST(Printable, WritesOutWhatIsNoUtf8) {
  EXPECT_EQ(printable("caf\xE9"), "caf\\xe9");
  EXPECT_EQ(printable("\xC0\x80 \xED\xA0\x80 \xF5\x80\x80\x80"), "\\xc0\\x80 \\xed\\xa0\\x80 \\xf5\\x80\\x80\\x80")
      << "overlong, half a pair, beyond the last";
  EXPECT_EQ(printable("\xE7\x8C"), "\\xe7\\x8c") << "cut short";
}

TEST(Printable, ChangesNothingTheSecondTime) {
  const std::string once = printable("a\n\033\xFF\u2028\\");
  EXPECT_EQ(printable(once), once);
}

TEST(Printable, KeepsTheNewlinesOfLines) { EXPECT_EQ(printable_lines("a\nb\033\n"), "a\nb\\x1b\n"); }

TEST(Printable, IsEveryError) {
  const std::string name = "e\033vil\nname\0and more"s;
  const DataError error(ErrorCode::kDataCorrupt, "bad", {.source = name, .record = 3}, "look at " + name);
  EXPECT_STREQ(error.what(),
               "e\\x1bvil\\nname\\x00and more: bad, record 3 (look at e\\x1bvil\\nname\\x00and more)");
  EXPECT_EQ(error.location().source, name) << "for programs every byte as it is";
}

}  // namespace
}  // namespace headrace
