// What is asked for again, how often, and what is thrown in the end.
#include "headrace/pipeline/tasks/retry.h"
#include "headrace/tests/support/fake_clock.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

DataError data_error(ErrorCode code) { return DataError(code, "no", {.source = "somewhere", .record = 3}); }

// Calls of read() until it returned or threw for good, and how long was waited between them.
struct Patience {
  int reads = 0, asked = 0;
  std::uint64_t waited_ns = 0;
  bool succeeded = false;
};

Patience read(const std::function<void(int)>& attempt, int may_ask = 100) {
  Patience patience;
  const FakeClock clock;
  const std::uint64_t begin = clock.now();
  try {
    read_with_retries(
        clock,
        [&] {
          attempt(patience.reads++);
          return 0;
        },
        [&] { return patience.asked++ < may_ask; });
    patience.succeeded = true;
  } catch (const DataError&) {
  }
  patience.waited_ns = clock.now() - begin;
  return patience;
}

TEST(Retry, AsksAgainForWhatTheSystemRefused) {
  for (const ErrorCode code : {ErrorCode::kIo, ErrorCode::kNotFound}) {
    const Patience patience = read([&](int attempt) {
      if (attempt < 3) throw data_error(code);
    });
    EXPECT_TRUE(patience.succeeded);
    EXPECT_EQ(patience.reads, 4);
    EXPECT_EQ(patience.asked, 3);
    EXPECT_EQ(patience.waited_ns, 105'000'000U) << "a little later each time: after 5, 20 and 80 ms";
  }
}

TEST(Retry, GivesUp) {
  const Patience patience = read([](int) { throw data_error(ErrorCode::kIo); });
  EXPECT_FALSE(patience.succeeded);
  EXPECT_EQ(patience.reads, 4);
}

TEST(Retry, DoesNotWaitWhereItMayNot) {
  const Patience none = read([](int) { throw data_error(ErrorCode::kIo); }, 0);
  EXPECT_EQ(none.reads, 1);
  EXPECT_EQ(none.waited_ns, 0U);
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
  const StepError error = error_of<StepError>([&] { read([](int) { throw std::runtime_error("lost"); }); });
  EXPECT_EQ(error.step(), "source read");
  EXPECT_EQ(error.cause(), "lost");
}

}  // namespace
}  // namespace headrace::test
