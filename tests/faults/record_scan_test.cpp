// Passes over all records before the first batch, in functions that do not come back.
#include "headrace/devices/base/clock.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/gate.h"

namespace headrace::test {
namespace {

// Asks for the size until the pass over the records ends with a complaint about `culprit`: a busy machine may
// leave a thread without a core for longer than the short time it is given here.
void expect_scan_to_stall_at(const Dataset& dataset, const std::string& culprit) {
  std::string last = "none";
  for (const Stopwatch watch; watch.seconds() < 20 && last.find(culprit) == std::string::npos;) {
    const Error error = error_of([&] { dataset.size(); });
    ASSERT_EQ(error.code(), ErrorCode::kTimeout) << error.what();
    last = error.what();
  }
  EXPECT_THAT(last, HasSubstr(culprit));
}

TEST(RecordScan, AFunctionThatDoesNotComeBackEndsThePass) {
  const Blocker blocker;
  {
    RecordFilter filter{.name = "slow", .stall_timeout_seconds = 0.2};
    filter.keeps = [block = blocker.at(112)](const ExampleView& record) {
      block(record.integer("value"));
      return true;
    };
    expect_scan_to_stall_at(Dataset::from(numbers(500)).filter(filter),
                            "filter(slow, version 1) on record 112 had not");
  }
  blocker.open();  // the thread ends without touching what is gone
}

TEST(RecordScan, AReadThatDoesNotComeBackEndsThePass) {
  const Blocker blocker;
  {
    const RecordFilter all{
        .name = "all", .keeps = [](const ExampleView&) { return true; }, .stall_timeout_seconds = 0.2};
    const SourcePtr source = std::make_shared<FakeSource>(60, blocker.at(3));
    expect_scan_to_stall_at(Dataset::from(source).filter(all),
                            "source read on record 3 had not come back after 0.2 s");
  }
  blocker.open();
}

TEST(RecordScan, AFunctionMayTakeItsTimeWhereNobodyMinds) {
  RecordFilter filter{.name = "patient", .stall_timeout_seconds = 0};
  filter.keeps = [](const ExampleView& record) {
    if (record.integer("value") == 7) std::this_thread::sleep_for(std::chrono::milliseconds(120));
    return true;
  };
  EXPECT_EQ(Dataset::from(numbers(20)).filter(filter).size(), 20U);
}

}  // namespace
}  // namespace headrace::test
