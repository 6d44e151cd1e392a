// What is asked for again, how often, and what is thrown in the end.
#include "headrace/pipeline/plan/scan/retry.h"

#include <gtest/gtest.h>

#include <functional>

#include "headrace/devices/base/clock.h"

namespace headrace {
namespace {

DataError data_error(ErrorCode code) { return DataError(code, "no", {.source = "somewhere", .record = 3}); }

// Calls of read() until it returned or threw for good.
struct Patience {
  int reads = 0, asked = 0;
  bool succeeded = false;
};

Patience read(const std::function<void(int)>& attempt, int may_ask = 100) {
  Patience patience;
  try {
    read_with_retries(
        [&] {
          attempt(patience.reads++);
          return 0;
        },
        [&] { return patience.asked++ < may_ask; });
    patience.succeeded = true;
  } catch (const DataError&) {
  }
  return patience;
}

TEST(Retry, AsksAgainForWhatTheSystemRefused) {
  for (const ErrorCode code : {ErrorCode::kIo, ErrorCode::kNotFound}) {
    const std::uint64_t begin = now_ns();
    const Patience patience = read([&](int attempt) {
      if (attempt < 3) throw data_error(code);
    });
    EXPECT_TRUE(patience.succeeded);
    EXPECT_EQ(patience.reads, 4);
    EXPECT_EQ(patience.asked, 3);
    EXPECT_GE(now_ns() - begin, 105'000'000U) << "a little later each time";
  }
}

TEST(Retry, GivesUp) {
  const Patience patience = read([](int) { throw data_error(ErrorCode::kIo); });
  EXPECT_FALSE(patience.succeeded);
  EXPECT_EQ(patience.reads, 4);
}

TEST(Retry, DoesNotWaitWhereItMayNot) {
  EXPECT_EQ(read([](int) { throw data_error(ErrorCode::kIo); }, 0).reads, 1);
  EXPECT_EQ(read([](int) { throw data_error(ErrorCode::kIo); }, 1).reads, 2);
}

TEST(Retry, AsksOnceForWhatIsNoRefusal) {
  const Patience corrupt = read([](int) { throw data_error(ErrorCode::kDataCorrupt); });
  EXPECT_EQ(corrupt.reads, 1);
  EXPECT_EQ(corrupt.asked, 0);
  const Failure failure{.what = {.code = ErrorCode::kIo, .source = "somewhere", .record = 3, .cause = "no"}};
  EXPECT_EQ(read([&](int) { throw FilterError(failure); }).reads, 1);
}

TEST(Retry, NamesWhatDoesNotNameItself) {
  try {
    read([](int) { throw std::runtime_error("lost"); });
    FAIL() << "no error";
  } catch (const StepError& error) {
    EXPECT_EQ(error.step(), "source read");
    EXPECT_EQ(error.cause(), "lost");
  }
}

}  // namespace
}  // namespace headrace
