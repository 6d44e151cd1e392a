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

}  // namespace
}  // namespace headrace::test
