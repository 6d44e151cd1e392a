// Batches on their way out: transfer, delivery, the order in which they are ready.
#include "headrace/pipeline/engine/delivery.h"
#include "headrace/pipeline/engine/ready_order.h"
#include "headrace/pipeline/engine/transfer.h"
#include "headrace/tests/pipeline/engine/parts.h"
#include "headrace/tests/support/failing_device.h"
#include "headrace/tests/support/gate.h"

namespace headrace::test {
namespace {

// What a replica's device memory holds of the batch: discrete memory of a CPU replica can be read once it is
// there.
std::vector<std::int64_t> sent(const Parts& parts, std::uint64_t sequence, std::size_t replica) {
  const SlotShare& share = parts.ring->slot_of(sequence).shares[replica];
  share.ready->wait();
  std::vector<std::int64_t> values(static_cast<std::size_t>(share.rows));
  std::memcpy(values.data(), share.device.data(), values.size() * sizeof(std::int64_t));
  return values;
}

TEST(Transfer, SendsEachReplicaItsShare) {
  Parts parts(devices_of_kind("discrete", 2), 20, 4, {.prefetch = 1});
  parts.make_ready(0);
  parts.make_ready(1);
  EXPECT_THAT(sent(parts, 0, 0), ElementsAre(0, 1));
  EXPECT_THAT(sent(parts, 0, 1), ElementsAre(2, 3));
  EXPECT_THAT(sent(parts, 1, 1), ElementsAre(6, 7));
}

TEST(Transfer, LeavesDeviceMemoryAloneUntilItsConsumerHasPassed) {
  Parts parts(devices_of_kind("discrete", 1), 20, 4, {.prefetch = 0});
  parts.make_ready(0);
  EXPECT_THAT(sent(parts, 0, 0), ElementsAre(0, 1, 2, 3));
  Slot& slot = parts.ring->slot_of(0);
  slot.mark.take();
  const auto consumer = parts.devices[0].create_stream();
  Gate gate;
  consumer->call(gate.blocker());
  parts.ring->release(slot, 0, consumer.get());
  EXPECT_TRUE(slot.is_passed()) << "pinned memory is free when its copy is done";
  parts.make_ready(1);
  EXPECT_FALSE(slot.shares[0].ready->ready()) << "the copy waits for the consumer";
  std::int64_t first = -1;
  std::memcpy(&first, slot.shares[0].device.data(), sizeof first);
  EXPECT_EQ(first, 0);
  gate.open();
  EXPECT_THAT(sent(parts, 1, 0), ElementsAre(4, 5, 6, 7));
}

// Batch 2 is begun in the slot of batch 0, whose consumer is still at work, before batch 1 is sent.
TEST(Transfer, ABatchWaitsForNoConsumerOfALaterOnesSlot) {
  Parts parts(devices_of_kind("discrete", 1), 20, 4, {.prefetch = 1});
  parts.make_ready(0);
  EXPECT_THAT(sent(parts, 0, 0), ElementsAre(0, 1, 2, 3));
  parts.ring->slot_of(0).mark.take();
  const auto consumer = parts.devices[0].create_stream();
  Gate gate;
  consumer->call(gate.blocker());
  parts.ring->release(parts.ring->slot_of(0), 0, consumer.get());
  parts.write(1);
  parts.write(2);
  parts.ring->complete(parts.ring->slot_of(1));
  parts.send(1);
  const Event& arrived = *parts.ring->slot_of(1).shares[0].ready;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!arrived.ready() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
  EXPECT_TRUE(arrived.ready()) << "its copy waits for the consumer of batch 0";
  parts.ring->complete(parts.ring->slot_of(2));
  parts.send(2);
  EXPECT_FALSE(parts.ring->slot_of(2).shares[0].ready->ready()) << "this one has to";
  gate.open();
  EXPECT_THAT(sent(parts, 1, 0), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(sent(parts, 2, 0), ElementsAre(8, 9, 10, 11));
}

TEST(Transfer, GivesADeviceThatFailsAsTheFailureOfItsBatch) {
  Lives lives;
  lives.copies = 1;
  Parts parts(devices_of<FailingDevice>(1, lives), 20, 4, {.prefetch = 1});
  parts.make_ready(0);
  EXPECT_FALSE(parts.ring->slot_of(0).failure);
  parts.make_ready(1);
  ASSERT_TRUE(parts.ring->slot_of(1).failure);
  EXPECT_THROW(parts.ring->slot_of(1).failure->raise(), DeviceError);
}

class SomethingBusy final : public Delivery::StallReport {
 public:
  std::string why_not_out(const SlotMark::Value& mark) const override {
    return "waiting for batch " + std::to_string(mark.sequence);
  }
};

// Parts with consumers.
struct Delivering {
  Delivering(int replicas, std::int64_t global, const LoaderOptions& options)
      : parts(cpu_replicas(replicas), 20, global, options), delivery(parts.run, *parts.ring, busy, nullptr) {}

  // Of a thread that waits as long as it may.
  std::string complaint_of(int replica) {
    auto complaint = std::async(std::launch::async, [&]() -> std::string {
      try {
        delivery.next(replica);
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::kTimeout);
        return error.what();
      }
      return "none";
    });
    parts.clock.await_waiting(1);
    parts.clock.advance(std::chrono::seconds(30));
    return complaint.get();
  }

  Parts parts;
  SomethingBusy busy;
  Delivery delivery;
};

TEST(Delivery, GivesEachReplicaItsShareInOrder) {
  Delivering run(2, 5, {.prefetch = 1});
  for (std::uint64_t sequence = 0; sequence < 2; ++sequence) run.parts.make_ready(sequence);
  std::vector<std::vector<std::uint64_t>> given;
  for (int step = 0; step < 2; ++step) {
    for (int replica = 0; replica < 2; ++replica) {
      const auto batch = run.delivery.next(replica);
      EXPECT_EQ(batch->position().sequence, static_cast<std::uint64_t>(step));
      EXPECT_EQ(batch->position().first_row, replica == 0 ? 0 : 2);
      given.emplace_back(batch->records().begin(), batch->records().end());
    }
  }
  EXPECT_THAT(given,
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 4), ElementsAre(5, 6), ElementsAre(7, 8, 9)));
  EXPECT_EQ(run.delivery.position(), 2U);
}

TEST(Delivery, CountsABatchAsTakenWhenEveryReplicaHasIt) {
  Delivering run(2, 5, {.prefetch = 1});
  run.parts.make_ready(0);
  const auto first = run.delivery.next(0);
  EXPECT_EQ(run.delivery.position(), 0U);
  const auto second = run.delivery.next(1);
  EXPECT_EQ(run.delivery.position(), 1U);
}

TEST(Delivery, SaysWhatItWaitsFor) {
  Delivering run(2, 5, {.prefetch = 0, .stall_timeout_seconds = 30});
  run.parts.write(0);
  EXPECT_THAT(run.complaint_of(0), HasSubstr("batch 0 was not there after 30 s: waiting for batch 0"));
  EXPECT_EQ(run.delivery.consumers()[0]->wait_ns.load(), 30'000'000'000U);
  run.parts.ring->complete(run.parts.ring->slot_of(0));
  auto first = run.delivery.next(0);
  EXPECT_THAT(run.complaint_of(0), HasSubstr("replica 1 has not taken batch 0"));
  auto second = run.delivery.next(1);
  EXPECT_THAT(run.complaint_of(0), HasSubstr("replica 1 holds batch 0"));
  second.reset();
  EXPECT_THAT(run.complaint_of(0), HasSubstr("slots are held by the consumer"));
  first.reset();
  EXPECT_THAT(run.complaint_of(0), HasSubstr("consumer's stream"));
}

TEST(Delivery, RaisesAFailureOnceInItsPlace) {
  Delivering run(1, 5, {.prefetch = 2});
  run.parts.make_ready(0);
  run.parts.write(1);
  Slot& slot = run.parts.ring->slot_of(1);
  slot.fail({.what = {.code = ErrorCode::kOutOfMemory, .cause = "too large"}});
  run.parts.ring->complete(slot);
  EXPECT_TRUE(run.delivery.next(0));
  for (const ErrorCode expected : {ErrorCode::kOutOfMemory, ErrorCode::kCancelled}) {
    const Error error = error_of([&] { run.delivery.next(0); });
    EXPECT_EQ(error.code(), expected);
    EXPECT_THAT(error.what(), HasSubstr("too large"));
  }
}

TEST(Delivery, EndsWithTheStreamAndWithAStop) {
  Delivering run(1, 20, {.prefetch = 0});
  run.parts.make_ready(0);
  EXPECT_TRUE(run.delivery.next(0));
  EXPECT_FALSE(run.delivery.next(0));
  EXPECT_THROW(run.delivery.next(1), ConfigError);
  Delivering stopped(1, 5, {.prefetch = 0});
  stopped.parts.ring->stop();
  EXPECT_THROW(stopped.delivery.next(0), Error);
}

// Which batch is handed out next, if batches may overtake others: a test makes them ready by hand.

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
