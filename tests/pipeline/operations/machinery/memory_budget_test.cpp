#include "headrace/pipeline/operations/machinery/memory_budget.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(MemoryBudget, ChargesUpToItsLimitAndNotAByteMore) {
  MemoryBudget budget("memory_budget_bytes", 100);
  EXPECT_TRUE(budget.try_charge(60));
  EXPECT_FALSE(budget.try_charge(41));
  EXPECT_FALSE(budget.try_charge(~std::uint64_t{0}));
  EXPECT_EQ(budget.used(), 60);
  EXPECT_TRUE(budget.try_charge(40));
  budget.release(100);
  EXPECT_EQ(budget.used(), 0);
}

TEST(MemoryBudget, SaysWhatDidNotFitAndHowMuchWould) {
  MemoryBudget budget("pinned_budget_bytes", 100);
  budget.charge(70, "a batch");
  const Error error = error_of([&] { budget.charge(50, "a batch"); });
  EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
  EXPECT_THAT(error.message(),
              HasSubstr("a batch needs 50 bytes more; 70 of the 100 bytes of pinned_budget_bytes"));
  EXPECT_THAT(error.hint(), HasSubstr("120 or more"));
}

TEST(MemoryBudget, WithoutALimitCountsOnly) {
  MemoryBudget budget("memory_budget_bytes", 0);
  budget.charge(std::uint64_t{1} << 50, "a batch");
  EXPECT_EQ(budget.used(), std::uint64_t{1} << 50);
}

TEST(MemoryBudget, HoldsAgainstManyThreads) {
  constexpr std::uint64_t kLimit = 1000;
  MemoryBudget budget("memory_budget_bytes", kLimit);
  std::atomic<bool> exceeded{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 20'000; ++round) {
        if (!budget.try_charge(300)) continue;
        if (budget.used() > kLimit) exceeded = true;
        budget.release(300);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(exceeded);
  EXPECT_EQ(budget.used(), 0);
}

TEST(ChargedBytes, HoldsMoreAndLessAndGivesAllBack) {
  MemoryBudget budget("memory_budget_bytes", 100);
  {
    ChargedBytes held(budget);
    held.hold(80, "scratch");
    EXPECT_EQ(budget.used(), 80);
    held.hold(30, "scratch");
    EXPECT_EQ(budget.used(), 30);
    EXPECT_THROW(held.hold(101, "scratch"), Error);
    EXPECT_EQ(held.bytes(), 30);
    ChargedBytes moved = std::move(held);
    EXPECT_EQ(moved.bytes(), 30);
    EXPECT_EQ(budget.used(), 30);
  }
  EXPECT_EQ(budget.used(), 0);
}

}  // namespace
}  // namespace headrace::test
