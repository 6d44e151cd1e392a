// A thread that waits for a pass over all records looks for signals, and may leave it.
#include "headrace/pipeline/dataset.h"
#include "headrace/pipeline/inspect.h"
#include "headrace/tests/pipeline/fake_source.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/gate.h"

namespace headrace::test {
namespace {

// Gives up, as a program does that was interrupted, once a pass over 100 records stands still at its seventh.
class Interrupted : public ::testing::Test {
 protected:
  std::function<void()> look() {
    return [this] {
      ++looks_;
      if (inside_.load() && !done_.load()) throw Error(ErrorCode::kCancelled, "interrupted");
    };
  }
  std::function<void(std::uint64_t)> block() {
    return [this, block = blocker_.at(7)](std::uint64_t record) {
      if (record == 7) inside_.store(true);
      block(record);
    };
  }
  Dataset all_judged() {
    RecordFilter filter{.name = "slow", .stall_timeout_seconds = 0};
    filter.keeps = [block = block()](const ExampleView& record) {
      block(static_cast<std::uint64_t>(record.integer("value")));
      return true;
    };
    return Dataset::from(numbers(100)).filter(filter);
  }
  // Nobody is interrupted any more, and nothing stands still.
  void go_on() {
    done_.store(true);
    blocker_.open();
  }
  void TearDown() override {
    if (!done_.load()) go_on();
  }

  const Blocker blocker_;
  std::atomic<bool> inside_{false};
  std::atomic<int> looks_{0};
  std::atomic<bool> done_{false};
};

void expect_interrupted(const std::function<void()>& call) {
  const Error error = error_of([&] { call(); });
  EXPECT_EQ(error.code(), ErrorCode::kCancelled);
  EXPECT_EQ(error.message(), "interrupted");
}

TEST_F(Interrupted, WhileAFilterIsCounted) {
  const Dataset dataset = all_judged();
  const ScanPoll poll(look());
  expect_interrupted([&] { dataset.size(); });
  EXPECT_GE(looks_.load(), 1);
  go_on();
  EXPECT_EQ(dataset.size(), 100U) << "a later call begins the pass again";
}

TEST_F(Interrupted, WhileALoaderOpens) {
  DeviceGroup devices = test_devices(1);
  const Dataset dataset = all_judged().batch({.global_batch = 10});
  expect_interrupted([&] { const Loader loader(dataset, devices, {.while_waiting = look()}); });
  go_on();
  EXPECT_EQ(Loader(dataset, devices, {.while_waiting = look()}).steps_per_epoch(), 10U);
}

TEST_F(Interrupted, WhileTheLongestRecordIsFound) {
  const Dataset sequences =
      Dataset::from(generator({.name = "sequences",
                               .fields = {{.name = "tokens", .dtype = DType::kU8, .shape = {Shape::kDynamic}}},
                               .records = 100,
                               .function = [block = block()](std::uint64_t index, RecordWriter& record) {
                                 block(index);
                                 record.put(0, std::vector<std::byte>(index % 5));
                               }}));
  const ScanPoll poll(look());
  expect_interrupted([&] { sequences.padded_batch({.global_batch = 4}); });
  go_on();
  EXPECT_EQ(sequences.padded_batch({.global_batch = 4}).fields()[0].shape, (Shape{4}));
}

TEST_F(Interrupted, WhileASourceIsInspected) {
  const SourcePtr source = std::make_shared<FakeSource>(100, block());
  const ScanPoll poll(look());
  expect_interrupted([&] { inspect_source(source); });
  go_on();
  EXPECT_EQ(inspect_source(source).examined, 100U);
}

TEST_F(Interrupted, WhileAnotherThreadReadsTheRecords) {
  const Dataset dataset = all_judged();
  std::uint64_t counted = 0;
  std::thread reader([&] { counted = dataset.size(); });
  while (!inside_.load()) std::this_thread::yield();
  {
    const ScanPoll poll(look());
    expect_interrupted([&] { dataset.size(); });
  }
  go_on();
  reader.join();
  EXPECT_EQ(counted, 100U) << "its own pass went on";
}

TEST(ScanPoll, TheInnermostCounts) {
  int outer = 0, inner = 0;
  ScanPoll::look();
  {
    const ScanPoll of_outer([&] { ++outer; });
    {
      const ScanPoll of_inner([&] { ++inner; });
      const ScanPoll nothing({});
      ScanPoll::look();
    }
    EXPECT_EQ(inner, 1);
    EXPECT_EQ(outer, 0);
    std::thread([] { ScanPoll::look(); }).join();
    EXPECT_EQ(outer, 0) << "another thread's";
    ScanPoll::look();
  }
  ScanPoll::look();
  EXPECT_EQ(outer, 1);
  EXPECT_EQ(inner, 1);
}

}  // namespace
}  // namespace headrace::test
