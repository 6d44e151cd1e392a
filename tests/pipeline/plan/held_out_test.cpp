#include "headrace/pipeline/held_out.h"
#include "headrace/pipeline/sources.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

Dataset zero_labels(std::uint64_t count) {
  Field field{.name = "label", .dtype = DType::kI64, .shape = Shape{}};
  return Dataset::from(
      in_memory("numbers", count, {{.field = field, .bytes = std::vector<std::byte>(count * 8)}}));
}

TEST(HeldOut, LeavesTheLastRecordsBeforeAnyShuffle) {
  const HeldOut parts =
      hold_out_last(zero_labels(103).shuffle({.seed = 7}).repeat(2).batch({.global_batch = 10}), 0.2);
  EXPECT_EQ(parts.train.explain().find("take(count=82)") < parts.train.explain().find("shuffle"), true);
  EXPECT_EQ(parts.train.steps_per_epoch(), 17U);  // twice 82 records
  EXPECT_THAT(parts.validation.explain(), HasSubstr("skip(count=82)"));
  EXPECT_THAT(parts.validation.explain(), Not(HasSubstr("shuffle")));
  EXPECT_EQ(parts.validation.steps_per_epoch(), 3U);  // 21 records
}

TEST(HeldOut, ASelectBelongsToBothPartsUnlessItFollowsAShuffle) {
  const HeldOut before = hold_out_last(zero_labels(10).select({9, 8, 7, 6}).batch({.global_batch = 1}), 0.5);
  EXPECT_EQ(before.train.size() + before.validation.size(), 4U);
  const HeldOut after = hold_out_last(zero_labels(10).shuffle().select({4, 4, 4}).batch({.global_batch = 1}), 0.5);
  EXPECT_EQ(after.train.size(), 3U);
  EXPECT_EQ(after.validation.size(), 5U);
}

TEST(HeldOut, RefusesSharesThatLeaveNothing) {
  for (const double share : {0.0, 1.0, -0.5, 0.95}) {
    EXPECT_THROW(hold_out_last(zero_labels(10).batch({.global_batch = 2}), share), ConfigError) << share;
  }
  EXPECT_THROW(hold_out_last(mix({zero_labels(10), zero_labels(10)}).batch({.global_batch = 2}), 0.5),
               ConfigError);
}

}  // namespace
}  // namespace headrace::test
