// The engine's parts without its threads: a test does by hand what they do, at the time that it sets.
#pragma once

#include "headrace/pipeline/engine/delivery.h"
#include "headrace/pipeline/engine/slot_memory.h"
#include "headrace/pipeline/engine/transfer.h"
#include "headrace/tests/pipeline/streams.h"
#include "headrace/tests/support/fake_clock.h"

namespace headrace::test {

// Up to a ring over `devices`, for batches of `global` of the numbers 0, 1, ..., with `prefetch` ahead.
struct Parts {
  Parts(DeviceGroup group, std::uint64_t count, std::int64_t global, LoaderOptions options)
      : devices(std::move(group)),
        budgets(options),
        run(Dataset::from(numbers(count)).batch({.global_batch = global}), devices, options, budgets),
        transfer(run, devices, budgets.memory),
        ring(std::make_shared<Ring>(
            allocate_slots(run, devices, transfer.conversion(), budgets, choices).slots, run.first,
            run.schedule.batches(), clock,
            RingOptions{
                .copied = !devices.in_host_memory(), .in_order = options.in_order, .in_bursts = run.in_bursts})) {
    transfer.open_streams(devices, nullptr);
  }
  ~Parts() { transfer.free_streams(); }

  // The assembler's and the lanes' work for a batch: its numbers are in their rows.
  void write(std::uint64_t sequence) {
    Slot& slot = ring->slot_of(sequence);
    ring->begin(sequence);
    slot.begin(run.schedule.position(sequence));
    run.schedule.locate(slot.position, slot.records, slot.passes, {});
    for (std::int64_t example = 0; example < slot.examples(); ++example) {
      const std::uint64_t record = slot.records[static_cast<std::size_t>(example)];
      std::memcpy(slot.rows_of(example)[0], &record, sizeof record);
    }
  }
  void make_ready(std::uint64_t sequence) {
    write(sequence);
    ring->complete(ring->slot_of(sequence));
    if (ring->copied()) send(sequence);
  }
  void send(std::uint64_t sequence) {
    Slot& slot = ring->slot_of(sequence);
    slot.mark.move_to(SlotState::kCopying);
    transfer.send(slot);
    ring->make_ready(slot);
  }

  FakeClock clock;
  DeviceGroup devices;
  Budgets budgets;
  Choices choices;
  RunPlan run;
  Transfer transfer;
  std::shared_ptr<Ring> ring;
};

}  // namespace headrace::test
