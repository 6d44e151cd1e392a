#include "headrace/devices/base/reader_words.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// Those of C++ again at the end.
class ReaderWordsTest : public ::testing::Test {
 protected:
  void TearDown() override {
    set_reader_words([](std::string_view name, std::string_view value) {
      return std::string(name) + (value.empty() ? "" : " = " + std::string(value));
    });
  }
};

TEST_F(ReaderWordsTest, AreThoseOfCppAtFirst) {
  EXPECT_EQ(named("LoaderOptions::threads"), "LoaderOptions::threads");
  EXPECT_EQ(named("LoaderOptions::threads", "3"), "LoaderOptions::threads = 3");
}

TEST_F(ReaderWordsTest, LeaveOutWhatTheReaderHasNot) {
  set_reader_words([](std::string_view name, std::string_view value) {
    return name == "LoaderOptions::threads" ? "--threads" + (value.empty() ? "" : " " + std::string(value)) : "";
  });
  EXPECT_EQ(named("LoaderOptions::threads", "3"), "--threads 3");
  EXPECT_EQ(
      joined({advice("lower {}", named("LoaderOptions::threads")), advice("raise {}", named("pulled()")), "wait"}),
      "lower --threads, or wait");
  EXPECT_EQ(joined({advice("raise {}", named("pulled()"))}), "");
}

}  // namespace
}  // namespace headrace::test
