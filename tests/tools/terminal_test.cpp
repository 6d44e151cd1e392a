// Numbers and the terminal.
#include "headrace/tests/tools/headrace_command.h"

namespace headrace::test {
namespace {

// What a user sees on a terminal: bars that fit, a fresh line after Ctrl-C.

std::vector<std::string> train(const std::string& steps) {
  return {HEADRACE_BINARY, "train",    "--recipe", "mnist-mlp",         "--data", kFashion.string(), "--devices",
          "cpu:1",         "--epochs", "1",        "--steps-per-epoch", steps,    "--threads",       "1"};
}

// The bars of a text, without what stands before and behind them.
std::vector<std::string> bars_of(const std::string& text) {
  static const std::string kStart = "\r\033[K";
  std::vector<std::string> bars;
  for (std::size_t at = text.find(kStart); at != std::string::npos; at = text.find(kStart, at)) {
    at += kStart.size();
    const std::string bar = text.substr(at, text.find_first_of("\r\n\033", at) - at);
    if (!bar.empty() && text.compare(at + bar.size(), 2, "\r\n") != 0) bars.push_back(bar);
  }
  return bars;
}

class Terminal : public ::testing::TestWithParam<int> {};

TEST_P(Terminal, TheBarFitsIt) {
  if (!std::filesystem::exists(kFashion)) GTEST_SKIP() << "needs Debian's package dataset-fashion-mnist";
  const int columns = GetParam();
  const TerminalRun run = run_on_terminal(train("1500"), columns);
  EXPECT_EQ(run.status, 0) << run.text;
  const std::vector<std::string> bars = bars_of(run.text);
  ASSERT_FALSE(bars.empty()) << run.text;
  for (const std::string& bar : bars) {
    EXPECT_LE(bar.size(), static_cast<std::size_t>(columns - 3)) << bar;
    if (bar.find("testing") != std::string::npos) continue;
    EXPECT_THAT(bar, HasSubstr("/1500"));
    if (columns >= 40) {
      EXPECT_THAT(bar, HasSubstr(" - loss: "));
    }
    if (columns >= 80) {
      EXPECT_THAT(bar, HasSubstr(" - accuracy: "));
    }
    if (columns >= 200) {
      EXPECT_THAT(bar, HasSubstr(" idle "));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Widths, Terminal, ::testing::Values(20, 40, 80, 110, 200));

TEST_P(Terminal, TheLinesOfEpochsAndTestFitIt) {
  if (!std::filesystem::exists(kFashion)) GTEST_SKIP() << "needs Debian's package dataset-fashion-mnist";
  if (GetParam() < 40) GTEST_SKIP() << "two numbers take 38 columns";
  const TerminalRun run = run_on_terminal(train("20"), GetParam());
  EXPECT_EQ(run.status, 0) << run.text;
  std::istringstream text(run.text);
  int lines = 0;
  for (std::string line; std::getline(text, line);) {
    line = line.substr(line.rfind('\033') + 1);  // npos + 1 is 0
    if (line.starts_with("[K")) line = line.substr(2);
    while (line.ends_with('\r')) line.pop_back();
    if (line.find("loss: ") == std::string::npos) continue;
    EXPECT_LE(line.size(), static_cast<std::size_t>(GetParam())) << line;
    ++lines;
  }
  EXPECT_EQ(lines, 2) << run.text;
}

TEST(Terminals, CtrlCEndsTrainingOnAFreshLine) {
  if (!std::filesystem::exists(kFashion)) GTEST_SKIP() << "needs Debian's package dataset-fashion-mnist";
  const TerminalRun run = run_on_terminal(train("1000000"), 80, "ETA");
  EXPECT_EQ(run.status, 130) << run.text;
  const Screen screen = shown(run.text, 80);
  ASSERT_GE(screen.lines.size(), 3U);
  EXPECT_EQ(screen.lines.back(), "") << "the cursor stands at the start of a line";
  EXPECT_THAT(screen.lines[screen.lines.size() - 2], StartsWith("headrace: interrupted after step ")) << run.text;
  EXPECT_THAT(screen.lines[screen.lines.size() - 3], HasSubstr("/1000000")) << "the bar stays as it was";
}

TEST(Terminals, CtrlCEndsABenchOnAFreshLine) {
  const TerminalRun run = run_on_terminal(
      {HEADRACE_BINARY, "bench", "input", "--pipeline", "trivial", "--seconds", "100"}, 80, "warming up");
  EXPECT_EQ(run.status, 130) << run.text;
  const Screen screen = shown(run.text, 80);
  ASSERT_GE(screen.lines.size(), 2U);
  EXPECT_EQ(screen.lines.back(), "");
  EXPECT_EQ(screen.lines[screen.lines.size() - 2], "headrace: interrupted");
  EXPECT_EQ(screen.wrapped, 0);
}

TEST(Terminals, ABenchShowsItsProgressAndTakesItAway) {
  const TerminalRun run =
      run_on_terminal({HEADRACE_BINARY, "bench", "input", "--pipeline", "trivial", "--seconds", "1"}, 120);
  EXPECT_EQ(run.status, 0) << run.text;
  EXPECT_THAT(run.text, HasSubstr("measuring: "));
  EXPECT_THAT(shown(run.text, 120).lines.front(), StartsWith("trivial: ")) << run.text;
}

// Numbers as options take them; tests/tools/wrong_values.h has those that are refused.

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
