#include "headrace/pipeline/engine/claim_counter.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(ClaimCounter, GivesEveryNumberOutInOrderAndSaysWhichIsLast) {
  ClaimCounter counter;
  EXPECT_TRUE(counter.empty());
  EXPECT_EQ(counter.claim(5).count, 0);
  counter.offer(7);
  EXPECT_FALSE(counter.empty());
  const ClaimCounter::Range first = counter.claim(5), second = counter.claim(5), none = counter.claim(5);
  EXPECT_EQ(first.first, 0);
  EXPECT_EQ(first.count, 5);
  EXPECT_FALSE(first.is_last);
  EXPECT_EQ(second.first, 5);
  EXPECT_EQ(second.count, 2);
  EXPECT_TRUE(second.is_last);
  EXPECT_EQ(none.count, 0);
  EXPECT_FALSE(none.is_last);
  EXPECT_TRUE(counter.empty());
}

TEST(ClaimCounter, HoldsTheLargestOffer) {
  ClaimCounter counter;
  counter.offer(ClaimCounter::kMaxCount);
  EXPECT_EQ(counter.claim(ClaimCounter::kMaxCount - 1).count, ClaimCounter::kMaxCount - 1);
  const ClaimCounter::Range last = counter.claim(10);
  EXPECT_EQ(last.first, ClaimCounter::kMaxCount - 1);
  EXPECT_EQ(last.count, 1);
  EXPECT_TRUE(last.is_last);
}

// Offers follow one another as soon as one is used up, while late threads still look at the one before: as slots
// do that are filled again.
TEST(ClaimCounter, GivesEveryNumberOfEveryOfferToOneThread) {
  constexpr int kThreads = 4, kOffers = 2000;
  constexpr std::int64_t kCount = 37;
  ClaimCounter counter;
  std::atomic<std::int64_t> pending{0}, sum{0};
  std::atomic<int> last{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      while (!stop) {
        const ClaimCounter::Range range = counter.claim(3);
        for (std::int64_t i = range.first; i < range.first + range.count; ++i) sum += i;
        last += range.is_last ? 1 : 0;
        pending -= range.count;
        if (range.count == 0) std::this_thread::yield();
      }
    });
  }
  for (int i = 0; i < kOffers; ++i) {
    pending = kCount;
    counter.offer(kCount);
    while (pending != 0) std::this_thread::yield();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum.load(), kOffers * (kCount * (kCount - 1) / 2));
  EXPECT_EQ(last.load(), kOffers);
}

}  // namespace
}  // namespace headrace::test
