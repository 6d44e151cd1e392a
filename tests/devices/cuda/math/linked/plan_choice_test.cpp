#include "headrace/devices/cuda/math/plan_choice.h"

#include <gtest/gtest.h>

namespace headrace::cuda {
namespace {

using Candidates = std::vector<PlanCandidate>;

PlanCandidate timed(std::vector<float> milliseconds) {
  return {.workspace_bytes = 1 << 20, .milliseconds = std::move(milliseconds)};
}

TEST(PlanChoice, WithoutTimesThePreferredOneIsTaken) {
  EXPECT_EQ(choose_plan(Candidates(1)), 0U);
  EXPECT_EQ(choose_plan(Candidates(5)), 0U);
}

TEST(PlanChoice, TheFastestByMedianIsTaken) {
  EXPECT_EQ(choose_plan(Candidates{timed({3}), timed({1}), timed({2})}), 1U);
  EXPECT_EQ(choose_plan(Candidates{timed({2, 2, 2}), timed({0.1F, 9, 9}), timed({1, 1, 50})}), 2U);
}

TEST(PlanChoice, WhatIsNotClearlyFasterDoesNotDisplaceThePreferredOne) {
  EXPECT_EQ(choose_plan(Candidates{timed({1.01F}), timed({1})}), 0U);
  EXPECT_EQ(choose_plan(Candidates{timed({1.1F}), timed({1.01F}), timed({1})}), 1U);
  EXPECT_EQ(choose_plan(Candidates{timed({1.03F}), timed({1})}), 1U);
}

TEST(PlanChoice, OneThatDidNotRunIsNotTaken) {
  EXPECT_EQ(choose_plan(Candidates{timed({}), timed({5}), timed({})}), 1U);
}

TEST(PlanChoice, TheMedianIsTheMiddleOfTheTimes) {
  EXPECT_EQ(median_time(timed({})), std::nullopt);
  EXPECT_EQ(median_time(timed({5, 1, 2})), 2.0F);
  EXPECT_EQ(median_time(timed({4})), 4.0F);
}

TEST(PlanChoice, IsDescribedInWords) {
  EXPECT_EQ(describe_choice(Candidates{timed({})}, 0), "proposal 1 of 1, not timed, workspace 1.0 MiB");
  EXPECT_EQ(describe_choice(Candidates{timed({0.48F}), timed({0.4124F})}, 1),
            "proposal 2 of 2, 0.412 ms, the first takes 0.480 ms, workspace 1.0 MiB");
  EXPECT_EQ(describe_choice(Candidates{timed({0.48F}), timed({0.5F})}, 0),
            "proposal 1 of 2, 0.480 ms, workspace 1.0 MiB");
  EXPECT_EQ(describe_choice(Candidates{timed({}), timed({1})}, 1),
            "proposal 2 of 2, 1.000 ms, the first did not run, workspace 1.0 MiB");
}

}  // namespace
}  // namespace headrace::cuda
