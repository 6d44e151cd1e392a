// Errors, the first of several, the words of readers, and signals.
#include <unistd.h>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/failures.h"
#include "headrace/devices/base/file_writer.h"
#include "headrace/devices/base/reader_words.h"
#include "headrace/devices/base/signals.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(Error, SaysWhatWasWrongAndWhatToDo) {
  const Error error(ErrorCode::kIo, "disk full", "delete something");
  EXPECT_STREQ(error.what(), "disk full (delete something)");
  EXPECT_EQ(error.message(), "disk full");
  EXPECT_EQ(error.hint(), "delete something");
  EXPECT_EQ(error.code(), ErrorCode::kIo);
}

TEST(Error, WithoutAHintIsTheMessageAlone) {
  EXPECT_STREQ(Error(ErrorCode::kIo, "disk full").what(), "disk full");
}

TEST(Error, EveryCodeHasItsOwnName) {
  std::set<std::string> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::kInternal); ++code) {
    names.insert(to_string(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::kInternal) + 1);
  EXPECT_FALSE(names.contains("unknown"));
}

TEST(ConfigError, IsAnInvalidArgument) { EXPECT_EQ(ConfigError("no").code(), ErrorCode::kInvalidArgument); }

TEST(DataError, NamesTheKnownPartsOfItsPlace) {
  const DataError whole(ErrorCode::kDataCorrupt, "bad magic", {.source = "a.tar", .record = 7, .offset = 512});
  EXPECT_STREQ(whole.what(), "a.tar: bad magic, record 7, byte offset 512");
  EXPECT_EQ(whole.location().record, 7U);
  const DataError part(ErrorCode::kIo, "cannot open", {.source = "a.tar"}, "check the path");
  EXPECT_STREQ(part.what(), "a.tar: cannot open (check the path)");
  EXPECT_STREQ(DataError(ErrorCode::kIo, "lost", {}).what(), "lost");
}

TEST(DeviceError, NamesTheDevice) {
  const DeviceError error(ErrorCode::kDevice, "lost", "cuda:1", "restart");
  EXPECT_STREQ(error.what(), "cuda:1: lost (restart)");
  EXPECT_EQ(error.device(), "cuda:1");
}

TEST(Check, PassesOrThrowsAnInternalErrorWithThePlace) {
  EXPECT_NO_THROW(HEADRACE_CHECK(1 + 1 == 2, "arithmetic"));
  const Error error = error_of([&] { HEADRACE_CHECK(1 + 1 == 3, "arithmetic"); });
  EXPECT_EQ(error.code(), ErrorCode::kInternal);
  EXPECT_THAT(error.what(), HasSubstr("arithmetic [1 + 1 == 3 at "));
  EXPECT_THAT(error.what(), HasSubstr("errors_test.cpp:"));
}

std::string text_of_error(const std::exception_ptr& error) {
  if (!error) return "none";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& caught) {
    return caught.what();
  }
}

std::exception_ptr error_with(const char* text) { return std::make_exception_ptr(std::runtime_error(text)); }

TEST(FirstErrorTest, TheSmallestPositionStaysWhateverTheOrder) {
  FirstError first;
  EXPECT_FALSE(first.any());
  first.note(7, error_with("seven"));
  first.note(3, error_with("three"));
  first.note(5, error_with("five"));
  first.note(3, error_with("three again"));
  EXPECT_FALSE(first.is_beyond(3));
  EXPECT_TRUE(first.is_beyond(4));
  EXPECT_THROW(first.raise(), std::runtime_error);
}

TEST(FirstErrorTest, WithoutPositionsTheEarliestStaysUntilItIsTaken) {
  FirstError first;
  first.note(error_with("one"));
  first.note(error_with("two"));
  EXPECT_TRUE(first.any());
  EXPECT_EQ(text_of_error(first.take()), "one");
  EXPECT_FALSE(first.any());
  EXPECT_NO_THROW(first.raise());
  first.note(error_with("later"));
  EXPECT_EQ(text_of_error(first.take()), "later");
}

TEST(FirstErrorTest, AFailureThatSomebodyElseReportsHidesLaterOnes) {
  FirstError first;
  first.note(nullptr);
  first.note(error_with("a consequence"));
  EXPECT_TRUE(first.any());
  EXPECT_NO_THROW(first.raise());
}

TEST(FirstErrorTest, OfManyThreadsTheSmallestPositionIsThrown) {
  FirstError first;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&first, thread] {
      for (int i = 99; i >= 0; --i) {
        const auto position = static_cast<std::uint64_t>(4 * i + thread);
        first.note(position, error_with(std::to_string(position).c_str()));
      }
    });
  }
  threads.clear();
  EXPECT_EQ(text_of_error(first.take()), "0");
}

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
