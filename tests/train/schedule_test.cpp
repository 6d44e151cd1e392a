#include "headrace/train/schedule.h"

#include <gtest/gtest.h>

#include <optional>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

TEST(Schedule, ANumberIsConstant) {
  const Schedule rate = 0.25F;
  EXPECT_EQ(rate.at(0), 0.25F);
  EXPECT_EQ(rate.at(1'000'000), 0.25F);
}

TEST(Schedule, LinearWarmsUpAndDecays) {
  const Schedule rate = Schedule::linear_decay({.peak = 1, .floor = 0.2F, .warmup_steps = 4, .total_steps = 12});
  EXPECT_FLOAT_EQ(rate.at(0), 0.25F);
  EXPECT_FLOAT_EQ(rate.at(3), 1.0F);
  EXPECT_FLOAT_EQ(rate.at(4), 1.0F);
  EXPECT_FLOAT_EQ(rate.at(8), 0.6F);
  EXPECT_FLOAT_EQ(rate.at(12), 0.2F);
  EXPECT_FLOAT_EQ(rate.at(100), 0.2F);
}

TEST(Schedule, KnowsFromWhichStepOnItIsZero) {
  EXPECT_EQ(Schedule::linear_decay({.peak = 1, .warmup_steps = 4, .total_steps = 12}).zero_from(), 12U);
  EXPECT_EQ(Schedule::cosine_decay({.peak = 1, .total_steps = 7}).zero_from(), 7U);
  EXPECT_EQ(Schedule::linear_decay({.peak = 1, .floor = 0.1F, .total_steps = 12}).zero_from(), std::nullopt);
  EXPECT_EQ(Schedule(0.1F).zero_from(), std::nullopt);
  EXPECT_EQ(Schedule(0.0F).zero_from(), 0U);
}

TEST(Schedule, CosineIsHalfWayInTheMiddle) {
  const Schedule rate = Schedule::cosine_decay({.peak = 2, .total_steps = 10});
  EXPECT_FLOAT_EQ(rate.at(0), 2.0F);
  EXPECT_FLOAT_EQ(rate.at(5), 1.0F);
  EXPECT_NEAR(rate.at(10), 0.0F, 1e-6F);
  EXPECT_GT(rate.at(2), 1.6F);
}

TEST(Schedule, AWarmUpLongerThanTheRunIsAnError) {
  EXPECT_THROW(Schedule::linear_decay({.warmup_steps = 5, .total_steps = 5}), ConfigError);
}

}  // namespace
}  // namespace headrace
