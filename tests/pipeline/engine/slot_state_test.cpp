#include "headrace/pipeline/engine/slot_state.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

using enum SlotState;

constexpr SlotState kStates[] = {kFree, kWriting, kMixing, kWritten, kCopying, kReady, kHeld};

// A mark that has come to `state` for batch 5 by a way there is.
void bring_to(SlotMark& mark, SlotState state) {
  if (state == kFree) return;
  mark.begin(5);
  if (state == kMixing) mark.move_to(kMixing);
  if (state <= kMixing) return;
  mark.move_to(kWritten);
  if (state == kWritten) return;
  mark.move_to(kCopying);
  if (state == kCopying) return;
  mark.move_to(kReady);
  if (state == kHeld) mark.take();
}

TEST(SlotState, HasTheTransitionsOfTheEngineAndNoOthers) {
  const std::set<std::pair<SlotState, SlotState>> expected{
      {kFree, kWriting},  {kWriting, kMixing}, {kWriting, kWritten}, {kMixing, kWritten}, {kWritten, kCopying},
      {kWritten, kReady}, {kCopying, kReady},  {kReady, kHeld},      {kHeld, kFree}};
  for (const SlotState from : kStates) {
    for (const SlotState to : kStates) {
      EXPECT_EQ(SlotMark::allows(from, to), expected.contains({from, to})) << to_string(from) << to_string(to);
    }
  }
}

TEST(SlotState, RefusesWhatIsNoTransitionAndStaysAsItIs) {
  for (const SlotState from : kStates) {
    for (const SlotState to : kStates) {
      SlotMark mark;
      bring_to(mark, from);
      ASSERT_EQ(mark.load().state, from);
      if (to == kWriting) {
        if (from == kFree) continue;
        EXPECT_THROW(mark.begin(6), Error);
      } else if (!SlotMark::allows(from, to)) {
        const Error error = error_of([&] { mark.move_to(to); });
        EXPECT_EQ(error.code(), ErrorCode::kInternal);
        EXPECT_THAT(error.what(), HasSubstr(to_string(from)));
        EXPECT_THAT(error.what(), HasSubstr(to_string(to)));
      } else {
        mark.move_to(to);
        EXPECT_EQ(mark.load().state, to);
        continue;
      }
      EXPECT_EQ(mark.load().state, from);
    }
  }
}

TEST(SlotState, KnowsItsBatch) {
  SlotMark mark;
  EXPECT_FALSE(mark.is_out(0)) << "free, whatever batch was there";
  bring_to(mark, kReady);
  EXPECT_TRUE(mark.is_out(5));
  EXPECT_FALSE(mark.is_out(4));
  EXPECT_TRUE(mark.is(5, kReady));
  EXPECT_FALSE(mark.is(6, kReady));
}

TEST(SlotState, IsTakenBySeveralReplicasAtOnce) {
  for (int round = 0; round < 200; ++round) {
    SlotMark mark;
    bring_to(mark, kReady);
    std::vector<std::thread> replicas;
    for (int r = 0; r < 4; ++r) replicas.emplace_back([&mark] { mark.take(); });
    for (std::thread& replica : replicas) replica.join();
    EXPECT_TRUE(mark.is(5, kHeld));
  }
}

}  // namespace
}  // namespace headrace::test
