#include "headrace/devices/base/remote/pace.h"

#include "headrace/tests/support/test.h"

namespace headrace::remote {
namespace {

using Seconds = std::chrono::duration<double>;

// Requests over a line that carries `rate` bytes a second, `delay` seconds late: as many bytes in flight as the
// pace says, always.
struct Line {
  double rate, delay;
  Pace pace = {};
  double now = 1;

  // `asked`: bytes in flight; 0: as many as the pace says, and others wait.
  void carry(double seconds, double asked = 0) {
    constexpr double kTick = 0.01;
    for (const double end = now + seconds; now < end;) {
      now += kTick;
      const double in_flight = asked == 0 ? static_cast<double>(pace.bytes()) : asked;
      const double carried = std::min(rate, in_flight / delay) * kTick;
      pace.note_delay(time(), delay);
      pace.note_bytes(time(), static_cast<std::uint64_t>(carried), static_cast<std::uint64_t>(in_flight),
                      asked == 0);
    }
  }
  Pace::Time time() const { return Pace::Time{} + std::chrono::duration_cast<Pace::Time::duration>(Seconds(now)); }
};

TEST(Pace, FillsALineTwiceAndNoMore) {
  Line line{.rate = 200e6, .delay = 0.04};
  line.carry(3);
  EXPECT_NEAR(static_cast<double>(line.pace.bytes()), 2 * 200e6 * 0.04, 2e6);
}

TEST(Pace, FindsAFastAndDistantLineWithinASecond) {
  Line line{.rate = 400e6, .delay = 0.05};
  line.carry(1);
  EXPECT_GE(line.pace.bytes(), 400e6 * 0.05);
}

TEST(Pace, StaysBetweenItsLimits) {
  EXPECT_EQ(Pace().bytes(), Pace::kFirstBytes);
  Line slow{.rate = 1e6, .delay = 0.04};
  slow.carry(3);
  EXPECT_EQ(slow.pace.bytes(), Pace::kMinBytes);
  Line fast{.rate = 5e9, .delay = 0.2};
  fast.carry(10);
  EXPECT_EQ(fast.pace.bytes(), Pace::kMaxBytes);
}

TEST(Pace, FollowsALineThatSlowsDown) {
  Line line{.rate = 400e6, .delay = 0.05};
  line.carry(3);
  line.rate = 50e6;
  line.carry(3);
  EXPECT_NEAR(static_cast<double>(line.pace.bytes()), 2 * 50e6 * 0.05, 1e6);
}

TEST(Pace, KnowsWhatALineHoldsOnceMoreRequestsBringNoMore) {
  Line line{.rate = 200e6, .delay = 0.04};
  line.carry(0.1);
  EXPECT_EQ(line.pace.bandwidth_delay(), 0U) << "the rate still grows";
  line.carry(3);
  EXPECT_NEAR(static_cast<double>(line.pace.bandwidth_delay()), 200e6 * 0.04, 1e6);
  Line idle{.rate = 1e6, .delay = 0.04};
  idle.carry(3, /*asked=*/20e3);
  EXPECT_EQ(idle.pace.bandwidth_delay(), 0U) << "nobody waited for it";
}

TEST(Pace, SeesASlowLineEvenIfNoRequestWaitsForAnother) {
  Line line{.rate = 1e9, .delay = 0.01};
  line.carry(3);
  line.rate = 20e6;
  line.carry(3, /*asked=*/2e6);
  EXPECT_NEAR(static_cast<double>(line.pace.bandwidth_delay()), 20e6 * 0.01, 2e4);
}

TEST(Pace, IsNotMisledByAnIdleLine) {
  Line line{.rate = 400e6, .delay = 0.05};
  line.carry(3);
  const std::uint64_t before = line.pace.bytes();
  line.carry(3, /*asked=*/20e3);
  EXPECT_EQ(line.pace.bytes(), before);
}

}  // namespace
}  // namespace headrace::remote
