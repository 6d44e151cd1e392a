// Text and numbers on a page.
#include <gtest/gtest.h>

#include <string>

#include "headrace/tools/report/number_text.h"
#include "headrace/tools/report/xml_text.h"

namespace headrace::tools {
namespace {

TEST(XmlText, EscapesMarkup) {
  EXPECT_EQ(xml_text(R"(a<b>&"c" 'd' é 漢字)"), "a&lt;b&gt;&amp;&quot;c&quot; &#39;d&#39; é 漢字");
  EXPECT_EQ(xml_text(""), "");
}

TEST(XmlText, ReplacesWhatXmlCannotHold) {
  EXPECT_EQ(xml_text("a\xFF"
                     "b"),
            "a\uFFFD"
            "b");
  EXPECT_EQ(xml_text(std::string("nul\0bell\a", 9)), "nul\uFFFDbell\uFFFD");
  EXPECT_EQ(xml_text("line\n\tend\xEF\xBF\xBF!"), "line\n\tend\uFFFD!");
}

TEST(NumberText, HasThreeDigits) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(0.012345), "0.0123");
  EXPECT_EQ(short_number(0.99972), "1.00");
  EXPECT_EQ(short_number(2.5), "2.50");
  EXPECT_EQ(short_number(812.4), "812");
  EXPECT_EQ(short_number(999.7), "1.00k");
  EXPECT_EQ(short_number(12'345), "12.3k");
  EXPECT_EQ(short_number(-4.5e6), "-4.50M");
  EXPECT_EQ(short_number(3e-9), "3e-09");
}

TEST(NumberText, SharesAndTimes) {
  EXPECT_EQ(percent(0), "0 %");
  EXPECT_EQ(percent(0.00001), "< 0.01 %");
  EXPECT_EQ(percent(0.0034), "0.34 %");
  EXPECT_EQ(percent(0.034), "3.4 %");
  EXPECT_EQ(percent(1), "100 %");
  EXPECT_EQ(duration(0.0381), "38 ms");
  EXPECT_EQ(duration(4.123), "4.12 s");
  EXPECT_EQ(duration(725), "12 min 5 s");
  EXPECT_EQ(duration(12'000), "3 h 20 min");
  EXPECT_EQ(nanoseconds_text(340), "340 ns");
  EXPECT_EQ(nanoseconds_text(81'500), "81.5 µs");
  EXPECT_EQ(nanoseconds_text(1.24e6), "1.24 ms");
}

}  // namespace
}  // namespace headrace::tools
