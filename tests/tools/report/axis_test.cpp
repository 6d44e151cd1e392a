#include "headrace/tools/report/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

namespace headrace::tools {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;

std::vector<std::string> labels_of(const Axis& axis) {
  std::vector<std::string> labels;
  for (const double tick : axis.ticks) labels.push_back(axis.label(tick));
  return labels;
}

TEST(Axis, HasRoundTicksAroundItsValues) {
  EXPECT_THAT(labels_of(make_axis(0.23, 2.31)), ElementsAre("0", "0.5", "1.0", "1.5", "2.0", "2.5"));
  EXPECT_THAT(labels_of(make_axis(0.905, 0.923)), ElementsAre("0.905", "0.910", "0.915", "0.920", "0.925"));
  EXPECT_THAT(labels_of(make_axis(7, -12)), ElementsAre("-15", "-10", "-5", "0", "5", "10"));
  EXPECT_THAT(labels_of(make_axis(800, 92'000, {.from_zero = true})),
              ElementsAre("0", "20k", "40k", "60k", "80k", "100k"));
  EXPECT_THAT(labels_of(make_axis(1e-4, 5e-4, {.from_zero = true})),
              ElementsAre("0", "0.0001", "0.0002", "0.0003", "0.0004", "0.0005"));
}

TEST(Axis, HasNoStepMoreForARoundedFloat) {
  EXPECT_THAT(labels_of(make_axis(0, static_cast<double>(1e-3F), {.from_zero = true})).back(), "0.0010");
}

TEST(Axis, OfWholeNumbersHasNoOthersBetween) {
  EXPECT_THAT(labels_of(make_axis(1, 3, {.whole = true})), ElementsAre("1", "2", "3"));
  EXPECT_THAT(labels_of(make_axis(1, 200, {.whole = true})), ElementsAre("0", "50", "100", "150", "200"));
  EXPECT_THAT(labels_of(make_axis(1, 1, {.whole = true})), ElementsAre("0", "1", "2"));
}

TEST(Axis, HasRoomAroundASingleValue) {
  for (const double value : {0.0, 0.7, -3.0, 1e-30, 4e20, 1e99}) {
    for (const bool whole : {false, true}) {
      const Axis axis = make_axis(value, value, {.whole = whole});
      EXPECT_GE(axis.ticks.size(), 2U) << value;
      EXPECT_LE(axis.ticks.size(), 8U) << value;
      EXPECT_LE(axis.low(), value);
      EXPECT_GE(axis.high(), value);
      EXPECT_LT(axis.low(), axis.high());
    }
  }
}

// Whatever the range: it is covered, without much empty room, by a handful of ticks whose labels differ.
TEST(Axis, FitsAnyRange) {
  for (int power = -12; power <= 18; power += 3) {
    for (const double from : {-3.7, 0.0, 0.11, 1.0, 9.99}) {
      for (const double length : {0.004, 0.3, 1.0, 7.77, 50.0}) {
        const double scale = std::pow(10.0, power), low = from * scale, high = (from + length) * scale;
        SCOPED_TRACE(std::to_string(low) + " to " + std::to_string(high));
        const Axis axis = make_axis(low, high);
        EXPECT_LE(axis.low(), low + 1e-5 * axis.step);
        EXPECT_GE(axis.high(), high - 1e-5 * axis.step);
        EXPECT_GE(axis.ticks.size(), 2U);
        EXPECT_LE(axis.ticks.size(), 8U);
        EXPECT_LE(axis.high() - axis.low(), 3 * (high - low));
        const auto labels = labels_of(axis);
        EXPECT_EQ(std::set(labels.begin(), labels.end()).size(), labels.size()) << testing::PrintToString(labels);
      }
    }
  }
}

TEST(Axis, PlacesItsEndsAtZeroAndOne) {
  const Axis axis = make_axis(0.23, 2.31);
  EXPECT_THAT(axis.position(0), DoubleEq(0));
  EXPECT_THAT(axis.position(2.5), DoubleEq(1));
  EXPECT_THAT(axis.position(1.25), DoubleEq(0.5));
}

}  // namespace
}  // namespace headrace::tools
