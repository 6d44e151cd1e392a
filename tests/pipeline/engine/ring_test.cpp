#include "headrace/pipeline/engine/ring.h"
#include "headrace/tests/pipeline/engine/parts.h"
#include "headrace/tests/support/gate.h"

namespace headrace::test {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using Turn = Ring::Turn;

SlotState state_of(const Parts& parts, std::uint64_t sequence) {
  return parts.ring->slot_of(sequence).mark.load().state;
}

TEST(Ring, TakesABatchThroughItsStatesInPlace) {
  Parts parts(cpu_replicas(2), 20, 4, {.prefetch = 1});
  ASSERT_EQ(parts.ring->size(), 2U);
  EXPECT_EQ(parts.ring->next_turn(0, 0), Turn::kBegin);
  parts.write(0);
  EXPECT_EQ(state_of(parts, 0), SlotState::kWriting);
  EXPECT_EQ(parts.ring->first_batch_ns(), 0U);
  parts.clock.advance(seconds(3));
  Slot& slot = parts.ring->slot_of(0);
  parts.ring->complete(slot);
  EXPECT_EQ(state_of(parts, 0), SlotState::kReady) << "nothing is copied";
  EXPECT_TRUE(parts.ring->wait_until_out(0, 0));
  EXPECT_EQ(parts.ring->first_batch_ns(), 3'000'000'000U);
  slot.mark.take();
  parts.ring->release(slot, 1, nullptr);
  EXPECT_EQ(state_of(parts, 0), SlotState::kHeld);
  EXPECT_EQ(slot.holders, 1);
  parts.ring->release(slot, 0, nullptr);
  EXPECT_EQ(parts.ring->next_turn(2, 0), Turn::kBegin) << "the slot came back";
  parts.write(2);
  EXPECT_TRUE(slot.mark.is(2, SlotState::kWriting));
}

TEST(Ring, WaitsForABatchAsLongAsItIsTold) {
  Parts parts(cpu_replicas(1), 20, 4, {.prefetch = 1});
  parts.write(0);
  std::atomic<bool> over{false};
  std::thread consumer([&] {
    EXPECT_FALSE(parts.ring->wait_until_out(0, 2));
    over = true;
  });
  parts.clock.await_waiting(1);
  parts.clock.advance(seconds(2) - microseconds(1));
  parts.clock.await_waiting(1);
  EXPECT_FALSE(over.load());
  parts.clock.advance(microseconds(1));
  consumer.join();
  std::thread patient([&] { EXPECT_TRUE(parts.ring->wait_until_out(0, 0)); });
  parts.clock.await_waiting(1);
  parts.clock.advance(seconds(1'000'000));
  parts.ring->complete(parts.ring->slot_of(0));
  patient.join();
}

TEST(Ring, WaitsForTheSlotOfTheNextBatch) {
  Parts parts(cpu_replicas(1), 20, 4, {.prefetch = 0});
  parts.make_ready(0);
  Slot& slot = parts.ring->slot_of(0);
  slot.mark.take();
  std::atomic<bool> begun{false};
  std::thread assembler([&] {
    EXPECT_EQ(parts.ring->next_turn(1, 0), Turn::kBegin);
    begun = true;
  });
  parts.clock.await_waiting(1);
  EXPECT_FALSE(begun.load());
  parts.ring->release(slot, 0, nullptr);
  assembler.join();
}

// A batch whose consumer gave it back in its stream's order is passed when the stream has come there.
TEST(Ring, WaitsForTheConsumersStream) {
  Parts parts(cpu_replicas(1), 20, 4, {.prefetch = 0});
  parts.make_ready(0);
  Slot& slot = parts.ring->slot_of(0);
  slot.mark.take();
  const auto stream = parts.devices[0].create_stream();
  Gate gate;
  stream->call(gate.blocker());
  parts.ring->release(slot, 0, stream.get());
  EXPECT_FALSE(slot.is_passed());
  std::atomic<bool> begun{false};
  std::thread assembler([&] {
    EXPECT_EQ(parts.ring->next_turn(1, 0), Turn::kBegin);
    begun = true;
  });
  parts.clock.await_waiting(1);
  EXPECT_FALSE(begun.load());
  gate.open();
  assembler.join();
  EXPECT_TRUE(slot.is_passed());
}

// A device that copies does not say when a copy is done: whoever waits for it looks again and again.
TEST(Ring, LooksWhetherACopyIsDone) {
  Parts parts(devices_of_kind("discrete", 1), 20, 4, {.prefetch = 0});
  parts.make_ready(0);
  Slot& slot = parts.ring->slot_of(0);
  slot.mark.take();
  const auto copies = parts.devices[0].create_stream();
  Gate gate;
  copies->call(gate.blocker());
  copies->record(*slot.shares[0].ready);  // as if this stream had sent the batch
  parts.ring->release(slot, 0, nullptr);
  std::atomic<bool> begun{false};
  std::thread assembler([&] {
    EXPECT_EQ(parts.ring->next_turn(1, 1), Turn::kBegin);
    begun = true;
  });
  parts.clock.await_waiting(1);
  parts.clock.advance(microseconds(500));
  parts.clock.await_waiting(1);
  EXPECT_FALSE(begun.load());
  gate.open();
  copies->synchronize();
  parts.clock.advance(microseconds(500));
  assembler.join();
}

TEST(Ring, SendsWhatIsWrittenBeforeItBeginsMore) {
  Parts parts(devices_of_kind("discrete", 1), 20, 4, {.prefetch = 2});
  parts.write(0);
  parts.write(1);
  parts.ring->complete(parts.ring->slot_of(1));
  EXPECT_EQ(parts.ring->next_turn(2, 0), Turn::kBegin) << "copies go in order, and the first is not written";
  parts.ring->complete(parts.ring->slot_of(0));
  EXPECT_EQ(state_of(parts, 0), SlotState::kWritten);
  EXPECT_EQ(parts.ring->next_turn(2, 0), Turn::kCopy);
  parts.send(0);
  EXPECT_EQ(state_of(parts, 0), SlotState::kReady);
  EXPECT_EQ(parts.ring->next_turn(2, 1), Turn::kCopy);
}

TEST(Ring, WakesEverybodyWhenItStopsOrBreaksOff) {
  Parts parts(cpu_replicas(1), 20, 4, {.prefetch = 0});
  std::thread consumer([&] { EXPECT_TRUE(parts.ring->wait_until_out(0, 0)); });
  parts.ring->break_off({.what = {.cause = "first"}});
  consumer.join();
  parts.ring->break_off({.what = {.cause = "second"}});
  EXPECT_EQ(parts.ring->broken_off()->what.cause, "first");
  parts.write(0);
  std::thread assembler([&] { EXPECT_EQ(parts.ring->next_turn(1, 0), Turn::kStop); });
  parts.ring->stop();
  assembler.join();
}

}  // namespace
}  // namespace headrace::test
