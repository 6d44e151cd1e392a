#include "headrace/devices/workers/module/call_ring.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

TEST(CallRing, ShowsWhatEachCallWas) {
  CallRing ring;
  EXPECT_EQ(ring.last(), "");
  ring.begin(CallKind::kBroadcast, 12);
  ring.end(CallState::kDone);
  ring.set_moment("step 57\n");
  ring.begin(CallKind::kAllReduce, 4096);
  EXPECT_GE(ring.running_seconds(), 0);
  EXPECT_EQ(ring.last(), "all-reduce 2 of 4096 bytes");
  EXPECT_THAT(ring.to_text(),
              AllOf(StartsWith("#"), HasSubstr(" broadcast "), HasSubstr(" running  step 57\\n\n")));
  ring.end(CallState::kFailed);
  ring.end(CallState::kDone);
  EXPECT_THAT(ring.to_text(), HasSubstr(" failed "));
  EXPECT_EQ(ring.running_seconds(), 0);
}

TEST(CallRing, KeepsTheLastOnes) {
  CallRing ring;
  for (int call = 0; call < 3000; ++call) {
    ring.begin(CallKind::kAllReduce, 4);
    ring.end(CallState::kDone);
  }
  const std::string text = ring.to_text();
  EXPECT_EQ(std::ranges::count(text, '\n'), 1 + static_cast<std::ptrdiff_t>(CallRing::kCapacity));
  EXPECT_THAT(text,
              AllOf(HasSubstr("\n      1977  "), HasSubstr("\n      3000  "), Not(HasSubstr("\n      1976  "))));
}

TEST(CallRing, CutsLongMoments) {
  CallRing ring;
  ring.set_moment(std::string(1000, 'm'));
  ring.begin(CallKind::kAllGather, 0);
  EXPECT_THAT(ring.to_text(), HasSubstr("  " + std::string(CallRecord::kMaxMoment, 'm') + "\n"));
}

}  // namespace
}  // namespace headrace::test
