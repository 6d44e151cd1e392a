#include <unistd.h>

#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/signals.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

// Of the child that a death test starts.
[[noreturn]] void write_and_get(const TempFolder& folder, std::initializer_list<int> signals) {
  handle_signals();
  handle_first_stop([](int) { std::fputs("gracefully\n", stderr); }, {SIGINT});
  FileWriter writer(folder / "a");
  for (const int signal : signals) ::raise(signal);
  ::_exit(77);
}

TEST(SignalsDeathTest, TheFirstInterruptIsTheProgramsAndTheSecondEndsIt) {
  const TempFolder folder;
  EXPECT_EXIT(write_and_get(folder, {SIGINT}), ::testing::ExitedWithCode(77), "gracefully");
  EXPECT_EXIT(write_and_get(folder, {SIGINT, SIGINT}), ::testing::ExitedWithCode(130),
              "gracefully\nheadrace: interrupted, the unfinished files are removed");
}

[[noreturn]] void stop_and_get(const TempFolder& folder, std::initializer_list<int> signals) {
  handle_signals();
  handle_first_stop([](int signal) { std::fprintf(stderr, "stops for %d\n", signal); }, {SIGINT, SIGTERM, SIGHUP});
  FileWriter writer(folder / "a");
  for (const int signal : signals) ::raise(signal);
  ::_exit(77);
}

TEST(SignalsDeathTest, TheFirstStopIsTheProgramsWhicheverItIs) {
  const TempFolder folder;
  EXPECT_EXIT(stop_and_get(folder, {SIGTERM}), ::testing::ExitedWithCode(77), "stops for 15");
  EXPECT_EXIT(stop_and_get(folder, {SIGINT}), ::testing::ExitedWithCode(77), "stops for 2");
  EXPECT_EXIT(stop_and_get(folder, {SIGHUP}), ::testing::ExitedWithCode(77), "stops for 1");
  EXPECT_EXIT(stop_and_get(folder, {SIGTERM, SIGINT}), ::testing::ExitedWithCode(130),
              "15\nheadrace: interrupted");
  EXPECT_EXIT(stop_and_get(folder, {SIGINT, SIGTERM}), ::testing::ExitedWithCode(143), "2\nheadrace: terminated");
}

TEST(SignalsDeathTest, EndTheProcessAndRemoveItsFiles) {
  const TempFolder folder;
  EXPECT_EXIT(write_and_get(folder, {SIGTERM}), ::testing::ExitedWithCode(143), "terminated, the unfinished");
  EXPECT_EXIT(write_and_get(folder, {SIGPIPE}), ::testing::ExitedWithCode(141), "pipe that the output goes to");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EXIT(write_and_get(folder, {SIGXFSZ}), ::testing::ExitedWithCode(77), "") << "the write says it";
}

// As opening a pipe that nobody reads: nothing else would end it.
TEST(SignalsDeathTest, TheFirstStopEndsAProcessThatWaitsForAnother) {
  const TempFolder folder;
  const auto wait_and_get = [&](int signal) {
    const BlockingCall waits;
    stop_and_get(folder, {signal});
  };
  EXPECT_EXIT(wait_and_get(SIGINT), ::testing::ExitedWithCode(130), "headrace: interrupted");
  EXPECT_EXIT(wait_and_get(SIGHUP), ::testing::ExitedWithCode(129), "headrace: hung up");
}

}  // namespace
}  // namespace headrace::test
