#include "headrace/train/step/norm_schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

TEST(NormSchedule, ScalesInEveryUpdateUnlessToldOtherwise) {
  const NormSchedule schedule({});
  for (std::uint64_t step = 0; step < 100; ++step) EXPECT_TRUE(schedule.scales(step)) << step;
  const NormSchedule third({.first = 3});
  for (std::uint64_t step = 0; step < 100; ++step) EXPECT_EQ(third.scales(step), step % 3 == 2) << step;
}

// Against the rule, carried out update by update; asked in an order of its own.
TEST(NormSchedule, WidensAsItsRuleSays) {
  for (const NormInterval& interval : {NormInterval{.first = 2, .growth = 15, .over_steps = 243},
                                       NormInterval{.first = 1, .growth = 3, .over_steps = 7},
                                       NormInterval{.first = 9, .growth = 1, .over_steps = 4}}) {
    const NormSchedule schedule(interval);
    std::vector<bool> wanted;
    const std::uint64_t steps = 3 * interval.over_steps + 40;
    for (std::uint64_t update = 1, last = 0; update <= steps; ++update) {
      const double progress =
          std::min(1.0, static_cast<double>(update) / static_cast<double>(interval.over_steps));
      const auto distance = static_cast<std::uint64_t>(interval.first) +
                            static_cast<std::uint64_t>(1e-9 + static_cast<double>(interval.growth) * progress);
      wanted.push_back(update - last >= distance);
      if (wanted.back()) last = update;
    }
    for (std::uint64_t step = steps; step-- > 0;) EXPECT_EQ(schedule.scales(step), wanted[step]) << step;
  }
}

TEST(NormSchedule, RefusesWhatIsNoDistance) {
  EXPECT_THROW(NormSchedule({.first = 0}), ConfigError);
  EXPECT_THROW(NormSchedule({.growth = -1}), ConfigError);
  EXPECT_THROW(NormSchedule({.growth = 1, .over_steps = 0}), ConfigError);
  EXPECT_THROW(NormSchedule({.growth = 1, .over_steps = std::uint64_t{1} << 60}), ConfigError);
}

}  // namespace
}  // namespace headrace
