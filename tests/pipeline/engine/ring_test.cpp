// Slots: the layout of a batch, their states, the ring.
#include "headrace/pipeline/engine/ring.h"
#include "headrace/pipeline/engine/batch_layout.h"
#include "headrace/pipeline/engine/batch_set.h"
#include "headrace/pipeline/engine/slot_state.h"
#include "headrace/tests/pipeline/engine/parts.h"
#include "headrace/tests/support/gate.h"
#include "headrace/tests/support/test.h"

namespace headrace::test {
namespace {

const Fields kFields{{.name = "image", .dtype = DType::kU8, .shape = {5, 5, 3}},
                     {.name = "label", .dtype = DType::kI64, .shape = {}}};

TEST(BatchLayout, PlacesFieldsOneAfterAnotherAligned) {
  const BatchLayout layout(kFields, 10, ReplicaRange::alone(4));
  EXPECT_EQ(layout.local_rows, 3);
  EXPECT_EQ(layout.row_bytes[0], 75U);
  EXPECT_EQ(layout.row_bytes[1], 8U);
  EXPECT_EQ(layout.offset[0], 0U);
  EXPECT_EQ(layout.offset[1], 256U);
  EXPECT_EQ(layout.buffer_bytes, 320U);
  EXPECT_EQ(layout.sample_bytes, 83U);
}

// In the order of the numbers given, before the others, which are sent.
TEST(BatchLayout, PutsFieldsApart) {
  const std::vector<std::size_t> apart{1};
  const BatchLayout together(kFields, 10, ReplicaRange::alone(2)),
      layout(kFields, 10, ReplicaRange::alone(2), apart);
  EXPECT_EQ(together.sent_from, 0U);
  EXPECT_EQ(layout.offset[1], 0U);
  EXPECT_EQ(layout.offset[0], layout.sent_from);
  EXPECT_GE(layout.sent_from, layout.row_bytes[1] * 5);
  EXPECT_EQ(layout.buffer_bytes, together.buffer_bytes);
  EXPECT_EQ(layout.sample_bytes, together.sample_bytes);
}

TEST(BatchLayout, SharesEveryExampleOnceInOrderAndWithinTheRows) {
  for (std::int64_t global : {1, 7, 10, 64}) {
    for (int replicas : {1, 2, 3, 8}) {
      const BatchLayout layout(kFields, global, ReplicaRange::alone(replicas));
      for (std::int64_t examples = 0; examples <= global; ++examples) {
        EXPECT_EQ(layout.first_of(examples, 0), 0);
        EXPECT_EQ(layout.first_of(examples, replicas), examples);
        for (int r = 0; r < replicas; ++r) {
          const std::int64_t rows = layout.first_of(examples, r + 1) - layout.first_of(examples, r);
          EXPECT_GE(rows, examples / replicas);
          EXPECT_LE(rows, layout.local_rows);
        }
      }
    }
  }
}

// The parts of several loaders are the whole, each with the rows that its replicas have there.
TEST(BatchLayout, DividesAWorldAmongLoaders) {
  const BatchLayout whole(kFields, 37, ReplicaRange::alone(8));
  for (std::int64_t examples = 0; examples <= 37; ++examples) {
    for (int first = 0, local = 1; first < 8; first += local, local = first == 1 ? 4 : 3) {
      const BatchLayout part(kFields, 37, {.first = first, .local = local, .world = 8});
      EXPECT_EQ(part.local_rows, whole.local_rows);
      EXPECT_EQ(part.examples_before(examples), whole.first_of(examples, first));
      for (int r = 0; r <= local; ++r) {
        EXPECT_EQ(part.examples_before(examples) + part.first_of(examples, r),
                  whole.first_of(examples, first + r));
      }
    }
  }
}

TEST(BatchSet, JoinsWhatFollowsWithoutAGap) {
  BatchSet batches(3);
  for (const std::uint64_t added : {6, 4, 9, 5}) batches.add(added);
  EXPECT_EQ(batches.first(), 3U);
  EXPECT_EQ(batches.end(), 10U);
  EXPECT_THAT(batches.ahead(), ElementsAre(4, 5, 6, 9));
  batches.add(3);
  EXPECT_EQ(batches.first(), 7U);
  EXPECT_THAT(batches.ahead(), ElementsAre(9));
  for (const std::uint64_t added : {8, 7}) batches.add(added);
  EXPECT_EQ(batches.first(), 10U);
  EXPECT_EQ(batches.end(), 10U);
  EXPECT_THAT(batches.ahead(), IsEmpty());
}

TEST(BatchSet, RemovesAnyBatch) {
  BatchSet batches(5, {7, 8});
  batches.remove(7);
  EXPECT_THAT(batches.ahead(), ElementsAre(8));
  batches.remove(2);
  EXPECT_EQ(batches.first(), 2U);
  EXPECT_THAT(batches.ahead(), ElementsAre(3, 4, 8));
  for (const std::uint64_t added : {2, 5, 6, 7}) batches.add(added);
  EXPECT_EQ(batches.first(), 9U);
}

TEST(BatchSet, NumbersTheBatchesThatItDoesNotHold) {
  const BatchSet batches(3, {4, 6, 7, 11});
  std::vector<std::uint64_t> missing;
  for (std::uint64_t turn = 3; turn < 10; ++turn) missing.push_back(batches.missing(turn));
  EXPECT_THAT(missing, ElementsAre(3, 5, 8, 9, 10, 12, 13));
  for (std::size_t i = 0; i + 1 < missing.size(); ++i) EXPECT_EQ(batches.after(missing[i]), missing[i + 1]);
  for (std::uint64_t sequence = 0; sequence < 14; ++sequence) {
    const bool held = sequence < 3 || sequence == 4 || sequence == 6 || sequence == 7 || sequence == 11;
    EXPECT_EQ(batches.contains(sequence), held) << sequence;
  }
  EXPECT_EQ(BatchSet(3).missing(8), 8U);
}

using enum SlotState;

constexpr SlotState kStates[] = {kFree, kWriting, kMixing, kWritten, kCopying, kReady, kHeld};

// A mark that has come to `state` for batch 5 by a way there is.
void bring_to(SlotMark& mark, SlotState state) {
  if (state == kFree) return;
  mark.begin(5);
  if (state == kMixing) mark.move_to(kMixing);
  if (state <= kMixing) return;
  mark.move_to(kWritten);
  if (state == kWritten) return;
  mark.move_to(kCopying);
  if (state == kCopying) return;
  mark.move_to(kReady);
  if (state == kHeld) mark.take();
}

TEST(SlotState, HasTheTransitionsOfTheEngineAndNoOthers) {
  const std::set<std::pair<SlotState, SlotState>> expected{
      {kFree, kWriting},  {kWriting, kMixing}, {kWriting, kWritten}, {kMixing, kWritten}, {kWritten, kCopying},
      {kWritten, kReady}, {kCopying, kReady},  {kReady, kHeld},      {kHeld, kFree}};
  for (const SlotState from : kStates) {
    for (const SlotState to : kStates) {
      EXPECT_EQ(SlotMark::allows(from, to), expected.contains({from, to})) << to_string(from) << to_string(to);
    }
  }
}

TEST(SlotState, RefusesWhatIsNoTransitionAndStaysAsItIs) {
  for (const SlotState from : kStates) {
    for (const SlotState to : kStates) {
      SlotMark mark;
      bring_to(mark, from);
      ASSERT_EQ(mark.load().state, from);
      if (to == kWriting) {
        if (from == kFree) continue;
        EXPECT_THROW(mark.begin(6), Error);
      } else if (!SlotMark::allows(from, to)) {
        const Error error = error_of([&] { mark.move_to(to); });
        EXPECT_EQ(error.code(), ErrorCode::kInternal);
        EXPECT_THAT(error.what(), HasSubstr(to_string(from)));
        EXPECT_THAT(error.what(), HasSubstr(to_string(to)));
      } else {
        mark.move_to(to);
        EXPECT_EQ(mark.load().state, to);
        continue;
      }
      EXPECT_EQ(mark.load().state, from);
    }
  }
}

TEST(SlotState, KnowsItsBatch) {
  SlotMark mark;
  EXPECT_FALSE(mark.is_out(0)) << "free, whatever batch was there";
  bring_to(mark, kReady);
  EXPECT_TRUE(mark.is_out(5));
  EXPECT_FALSE(mark.is_out(4));
  EXPECT_TRUE(mark.is(5, kReady));
  EXPECT_FALSE(mark.is(6, kReady));
}

TEST(SlotState, IsTakenBySeveralReplicasAtOnce) {
  for (int round = 0; round < 200; ++round) {
    SlotMark mark;
    bring_to(mark, kReady);
    std::vector<std::thread> replicas;
    for (int r = 0; r < 4; ++r) replicas.emplace_back([&mark] { mark.take(); });
    for (std::thread& replica : replicas) replica.join();
    EXPECT_TRUE(mark.is(5, kHeld));
  }
}

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
