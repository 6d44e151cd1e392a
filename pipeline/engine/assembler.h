// The thread that begins batches in returned slots and sends finished ones to their devices.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/devices/base/remote.h"
#include "headrace/pipeline/engine/compute.h"
#include "headrace/pipeline/engine/run_plan.h"
#include "headrace/pipeline/engine/slot.h"
#include "headrace/pipeline/engine/stream_feed.h"
#include "headrace/pipeline/engine/transfer.h"

namespace headrace {

// Does nothing unless the source's bytes come over a network.
class RemoteReads {
 public:
  // Charges what may be fetched ahead to the budget, at most half of what it has left. REQUIRES: both outlive
  // this.
  RemoteReads(RunPlan& run, MemoryBudget& budget);

  // Announces the records of the batch, and of those that follow it, that no cache holds. Called by the assembler.
  void announce(const Slot& slot);
  // Lets the source forget what was announced and not read.
  void forget() const noexcept;

 private:
  void announce_batch(std::uint64_t sequence);
  void announce_records(std::span<const std::uint64_t> records);

  RunPlan& run_;
  ChargedBytes charged_;
  std::optional<remote::Window> window_;                    // none: not remote
  std::uint64_t next_ = 0;                                  // batch to announce
  std::vector<std::uint64_t> records_, passes_, uncached_;  // reused
};

class Assembler {
 public:
  // `feed`: null unless the source is a stream. `readers`: whether there are readers.
  // REQUIRES: all arguments outlive this.
  Assembler(RunPlan& run, Ring& ring, Compute& compute, Transfer& transfer, ThreadState& state, StreamFeed* feed,
            RemoteReads& remote_reads, bool readers)
      : run_(run),
        ring_(ring),
        compute_(compute),
        transfer_(transfer),
        state_(state),
        feed_(feed),
        remote_reads_(remote_reads),
        readers_(readers) {}

  // Runs in the thread. Returns when all batches have begun and been sent, or the ring has stopped.
  void run();

 private:
  void begin_counted(std::uint64_t sequence);
  void note_end();
  void begin(std::uint64_t sequence);
  void add_guests(Slot& slot);
  void give_up(std::uint64_t sequence, Failure failure);
  bool replays(std::uint64_t sequence) const noexcept;
  bool is_for_readers() const;
  void send(std::uint64_t sequence);

  RunPlan& run_;
  Ring& ring_;
  Compute& compute_;
  Transfer& transfer_;
  ThreadState& state_;
  StreamFeed* feed_;
  RemoteReads& remote_reads_;
  bool readers_;
  bool end_is_known_ = false;  // for a stream
  std::uint64_t idle_since_ = 0;
};

}  // namespace headrace
