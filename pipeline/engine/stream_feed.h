// Pulls the records of a stream ahead of the batches that will hold them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "headrace/pipeline/engine/ring.h"
#include "headrace/pipeline/engine/run_plan.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"

namespace headrace {

// One thread pulls, the assembler takes. A batch may begin once all records that it can hold have arrived and it
// is known whether another batch follows: this makes its content a function of the stream alone.
class StreamFeed {
 public:
  // Holds back the ring's batches. REQUIRES: all arguments outlive this.
  StreamFeed(const RunPlan& run, Ring& ring, MemoryBudget& budget);

  // Runs in the thread: pulls until the stream ends, its last batch has arrived, or stop().
  void run(ThreadState& state);

  // Returns the stream's number of records once its end was seen. Called by the assembler.
  std::optional<std::uint64_t> records() const;
  // Gives the slot the bytes of its located records in exchange for its previous ones. Records before
  // `first_record` are not requested any more.
  void take(Slot& slot, std::uint64_t first_record);

  void stop() noexcept;

 private:
  bool wait_for_room();
  bool pull(RecordStream& stream, std::uint64_t record, ThreadState& state);
  void charge(StreamedRecord& record);
  void add(StreamedRecord record);
  bool holds(std::uint64_t records, std::uint64_t sequence) const;
  void end(std::uint64_t records);
  void break_at(std::uint64_t record, const std::exception& cause);
  void recycle(StreamedRecord& record);
  StreamedRecord new_record();

  const RunPlan& run_;
  Ring& ring_;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  // By mutex_.
  std::deque<StreamedRecord> waiting_;        // from record first_ on
  std::vector<std::vector<std::byte>> free_;  // buffers for reuse
  std::uint64_t first_;
  std::uint64_t taken_;    // batches below this were begun, or handed out by an earlier part of the run
  std::uint64_t allowed_;  // batches below this may begin
  std::optional<std::uint64_t> records_;
  bool stopped_ = false;
  ChargedBytes charged_;  // for all buffers, including those in slots
};

}  // namespace headrace
