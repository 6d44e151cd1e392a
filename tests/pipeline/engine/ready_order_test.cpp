// Which batch is handed out next, if batches may overtake others: a test makes them ready by hand.
#include "headrace/pipeline/engine/ready_order.h"
#include "headrace/tests/pipeline/engine/parts.h"

namespace headrace::test {
namespace {

class NamedBatch final : public Delivery::StallReport {
 public:
  std::string why_not_out(const SlotMark::Value& mark) const override {
    return "waiting for batch " + std::to_string(mark.sequence);
  }
};

// Consumers of 5 batches of 4 an epoch, in any order.
struct AnyOrder {
  explicit AnyOrder(int replicas, LoaderOptions options) : parts(cpu_replicas(replicas), 20, 4, with(options)) {}

  static LoaderOptions with(LoaderOptions options) {
    options.in_order = false;
    return options;
  }
  BatchPosition take(int replica = 0) { return delivery.next(replica)->position(); }
  std::uint64_t number(int replica = 0) { return take(replica).sequence; }

  Parts parts;
  NamedBatch busy;
  Delivery delivery{parts.run, *parts.ring, busy, nullptr};
};

TEST(ReadyOrder, TakesTheFirstBatchThatIsReady) {
  AnyOrder run(1, {.prefetch = 3});
  for (const std::uint64_t written : {0, 1, 2, 3}) run.parts.write(written);
  const auto complete = [&](std::uint64_t sequence) {
    run.parts.ring->complete(run.parts.ring->slot_of(sequence));
  };
  complete(2);
  EXPECT_EQ(run.number(), 2U);
  complete(3);
  complete(1);
  EXPECT_EQ(run.number(), 1U) << "the lowest of those that are ready";
  EXPECT_EQ(run.number(), 3U);
  EXPECT_EQ(run.delivery.handed_out().first(), 0U);
  EXPECT_THAT(run.delivery.handed_out().ahead(), ElementsAre(1, 2, 3));
  auto turn = std::async(std::launch::async, [&] { return run.parts.ring->next_turn(4, 0); });
  run.parts.clock.await_waiting(1);
  EXPECT_EQ(turn.wait_for(std::chrono::seconds(0)), std::future_status::timeout) << "its slot is batch 0's";
  complete(0);
  EXPECT_EQ(run.number(), 0U);
  EXPECT_EQ(turn.get(), Ring::Turn::kBegin);
}

TEST(ReadyOrder, KeepsEpochsApart) {
  AnyOrder run(1, {.epochs = 2, .prefetch = 3});
  for (const std::uint64_t ready : {0, 1, 2}) {
    run.parts.make_ready(ready);
    EXPECT_EQ(run.number(), ready);
  }
  run.parts.write(3);
  for (const std::uint64_t ready : {4, 5, 6}) run.parts.make_ready(ready);
  BatchPosition at = run.take();
  EXPECT_EQ(at.sequence, 4U);
  EXPECT_FALSE(at.last_of_epoch) << "batch 3 is to come";
  auto next = std::async(std::launch::async, [&] { return run.take(); });
  run.parts.clock.await_waiting(1);
  EXPECT_EQ(next.wait_for(std::chrono::seconds(0)), std::future_status::timeout) << "5 and 6 are another epoch's";
  run.parts.ring->complete(run.parts.ring->slot_of(3));
  at = next.get();
  EXPECT_EQ(at.sequence, 3U);
  EXPECT_TRUE(at.last_of_epoch);
  EXPECT_EQ(run.number(), 5U);
}

TEST(ReadyOrder, IsTheSameForAllReplicas) {
  AnyOrder run(2, {.prefetch = 3});
  for (const std::uint64_t written : {0, 1, 2, 3}) run.parts.write(written);
  const auto complete = [&](std::uint64_t sequence) {
    run.parts.ring->complete(run.parts.ring->slot_of(sequence));
  };
  complete(2);
  EXPECT_EQ(run.number(1), 2U);
  complete(1);
  EXPECT_EQ(run.number(1), 1U);
  complete(0);
  EXPECT_EQ(run.number(0), 2U) << "as replica 1";
  EXPECT_THAT(run.delivery.handed_out().ahead(), ElementsAre(2)) << "batch 1 was not taken by both";
  EXPECT_EQ(run.number(0), 1U);
  EXPECT_EQ(run.number(0), 0U);
  EXPECT_EQ(run.delivery.handed_out().first(), 0U);
  EXPECT_THAT(run.delivery.handed_out().ahead(), ElementsAre(1, 2));
  EXPECT_EQ(run.number(1), 0U);
  EXPECT_EQ(run.delivery.handed_out().first(), 3U);
  EXPECT_THAT(run.delivery.handed_out().ahead(), IsEmpty());
}

TEST(ReadyOrder, CountsWhatIsReady) {
  AnyOrder run(2, {.prefetch = 3});
  run.parts.write(0);
  for (const std::uint64_t ready : {1, 2, 3}) run.parts.make_ready(ready);
  EXPECT_EQ(run.number(0), 1U);
  EXPECT_EQ(run.number(0), 2U);
  EXPECT_EQ(run.number(1), 1U);
  const auto& consumers = run.delivery.consumers();
  EXPECT_EQ(consumers[0]->ready_sum.load(), 3U + 2U);
  EXPECT_EQ(consumers[1]->ready_sum.load(), 3U);
  EXPECT_EQ(consumers[0]->asked_ready.load(), 2U);
}

TEST(ReadyOrder, SaysWhatIsWaitedFor) {
  AnyOrder run(2, {.prefetch = 1, .stall_timeout_seconds = 30});
  const auto complaint_of = [&](int replica) {
    auto complaint = std::async(std::launch::async, [&]() -> std::string {
      try {
        run.take(replica);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kTimeout);
        return error.what();
      }
      return "none";
    });
    run.parts.clock.await_waiting(1);
    run.parts.clock.advance(std::chrono::seconds(30));
    return complaint.get();
  };
  run.parts.write(0);
  run.parts.make_ready(1);
  EXPECT_EQ(run.number(0), 1U);
  EXPECT_THAT(complaint_of(0),
              HasSubstr("no batch was there after 30 s; batch 0, the first of them: waiting for batch 0"));
  run.parts.ring->complete(run.parts.ring->slot_of(0));
  EXPECT_EQ(run.number(0), 0U);
  EXPECT_THAT(complaint_of(0), HasSubstr("replica 1 has not taken batch 1"));
}

TEST(ReadyOrder, RaisesAFailureInItsTurnOnce) {
  AnyOrder run(2, {.prefetch = 2});
  run.parts.write(0);
  run.parts.write(1);
  run.parts.make_ready(2);
  Slot& slot = run.parts.ring->slot_of(1);
  slot.fail({.what = {.code = ErrorCode::kOutOfMemory, .cause = "too large"}});
  EXPECT_EQ(run.number(0), 2U);
  run.parts.ring->complete(slot);
  EXPECT_EQ(run.number(1), 2U);
  for (const ErrorCode expected : {ErrorCode::kOutOfMemory, ErrorCode::kCancelled}) {
    for (const int replica : {1, 0}) {
      const Error error = error_of([&] { run.take(replica); });
      EXPECT_EQ(error.code(), expected);
      EXPECT_THAT(error.what(), HasSubstr("too large"));
    }
  }
  EXPECT_EQ(run.delivery.handed_out().first(), 0U);
  EXPECT_THAT(run.delivery.handed_out().ahead(), ElementsAre(2)) << "the failed batch was not handed out";
}

TEST(ReadyOrder, EndsWithTheRunAndWithAStop) {
  AnyOrder run(1, {.prefetch = 4});
  for (const std::uint64_t ready : {4, 3, 2, 1, 0}) run.parts.make_ready(ready);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(run.take().last_of_epoch, i == 4);
  EXPECT_FALSE(run.delivery.next(0));
  AnyOrder stopped(1, {.prefetch = 1});
  auto waiting = std::async(std::launch::async, [&] { EXPECT_THROW(stopped.take(), Error); });
  stopped.parts.clock.await_waiting(1);
  stopped.parts.ring->stop();
  waiting.get();
}

TEST(ReadyOrder, SendsWhateverIsWritten) {
  Parts parts(devices_of_kind("discrete", 1), 20, 4, {.prefetch = 2, .in_order = false});
  for (const std::uint64_t written : {0, 1, 2}) parts.write(written);
  for (const std::uint64_t complete : {2, 1}) parts.ring->complete(parts.ring->slot_of(complete));
  EXPECT_EQ(parts.ring->next_turn(3, 0), Ring::Turn::kCopy);
  EXPECT_EQ(parts.ring->written(0), 1U);
  parts.send(1);
  EXPECT_EQ(parts.ring->written(0), 2U);
  parts.send(2);
  EXPECT_EQ(parts.ring->written(0), std::nullopt);
}

}  // namespace
}  // namespace headrace::test
