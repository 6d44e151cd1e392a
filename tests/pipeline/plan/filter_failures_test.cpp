// Which records of a plan's source its filters could not judge.
#include "headrace/pipeline/plan/filter_failures.h"
#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/tasks/failure.h"
#include "headrace/tests/pipeline/fake_source.h"

namespace headrace::test {
namespace {

Failure failure(const std::string& cause) {
  return {.what = {.code = ErrorCode::kDataCorrupt,
                   .source = "somewhere",
                   .record = 3,
                   .offset = 12,
                   .operation = "filter(f)",
                   .cause = cause},
          .hint = "mend it"};
}

TEST(FilterFailures, AreRefusedWithWhatWasFoundFirst) {
  FilterFailures filter_failures;
  EXPECT_TRUE(filter_failures.empty());
  EXPECT_NO_THROW(filter_failures.check(3));
  filter_failures.add(3, failure("first"));
  filter_failures.add(3, failure("second"));
  EXPECT_TRUE(filter_failures.contains(3));
  EXPECT_FALSE(filter_failures.contains(4));
  EXPECT_NO_THROW(filter_failures.check(4));
  const FilterError error = error_of<FilterError>([&] { filter_failures.check(3); });
  EXPECT_EQ(error.operation(), "filter(f)");
  EXPECT_EQ(error.cause(), "first");
  EXPECT_EQ(error.code(), ErrorCode::kDataCorrupt);
  EXPECT_EQ(error.location().source, "somewhere");
  EXPECT_EQ(error.location().record, 3U);
  EXPECT_EQ(error.location().offset, 12U);
  EXPECT_EQ(error.hint(), "mend it");
}

TEST(FilterFailures, ChangeAnIdentityOnlyWhereThereAreAny) {
  FilterFailures one, other;
  EXPECT_EQ(one.mixed_into(5), 5U);
  one.add(3, failure("x"));
  other.add(4, failure("x"));
  EXPECT_NE(one.mixed_into(5), 5U);
  EXPECT_NE(one.mixed_into(5), other.mixed_into(5));
  FilterFailures again;
  again.add(3, failure("another cause"));
  EXPECT_EQ(one.mixed_into(5), again.mixed_into(5)) << "how a system words its errors is no matter";
}

TEST(FilterFailures, AreNumberedAsInThePlansSource) {
  const auto part = [](std::uint64_t throwing) {
    return Dataset::from(std::make_shared<FakeSource>(10))
        .filter({.name = "f", .keeps = [throwing](const ExampleView& record) {
                   if (record.integer("value") != static_cast<std::int64_t>(throwing)) return true;
                   throw std::runtime_error("no luck");
                 }});
  };
  const auto of = [](const Dataset& dataset) {
    return FilterFailures::of(make_stream_plan(dataset.plan()).index_stages);
  };
  EXPECT_TRUE(of(part(100)).empty());
  EXPECT_TRUE(of(part(4)).contains(4));
  EXPECT_TRUE(of(part(4).shuffle().take(2)).contains(4));
  const FilterFailures combined = of(concatenate({part(1), interleave({part(2), part(3)})}));
  for (std::uint64_t record = 0; record < 30; ++record) {
    EXPECT_EQ(combined.contains(record), record == 1 || record == 12 || record == 23) << record;
  }
}

}  // namespace
}  // namespace headrace::test
