#include "headrace/devices/base/failures.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

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

}  // namespace
}  // namespace headrace::test
