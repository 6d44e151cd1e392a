// The records of a stream, pulled ahead of the batches that they will be in.
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

// One thread pulls, the assembler takes. A batch may begin once all that it can hold are there and it is known
// whether another one follows it: that is what makes its content a function of the stream alone.
class StreamFeed {
 public:
  // Both must outlive this. Holds back the ring's batches.
  StreamFeed(const RunPlan& run, Ring& ring, MemoryBudget& budget);

  // The thread's function: pulls until the stream ends, its last batch is there, or stop().
  void run(ThreadState& state);

  // The assembler. How many records the stream has, once its end was seen.
  std::optional<std::uint64_t> records() const;
  // Gives the slot, whose records are located, their bytes in exchange for those that it had. Records before
  // `first_record` are not asked for any more.
  void take(Slot& slot, std::uint64_t first_record);

  void stop() noexcept;

 private:
  bool wait_for_room();
  bool pull(RecordStream& stream, std::uint64_t record, ThreadState& state);
  void charge(StreamedRecord& record);
  void add(StreamedRecord record);
  void end(std::uint64_t records);
  void break_at(std::uint64_t record, const std::exception& cause);
  void recycle(StreamedRecord& record);
  StreamedRecord new_record();

  const RunPlan& run_;
  Ring& ring_;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  // By mutex_.
  std::deque<StreamedRecord> waiting_;        // from record number first_ on
  std::vector<std::vector<std::byte>> free_;  // buffers to be used again
  std::uint64_t first_;
  std::uint64_t taken_;    // batches below this were begun
  std::uint64_t allowed_;  // batches below this may begin
  std::optional<std::uint64_t> records_;
  bool stopped_ = false;
  ChargedBytes charged_;  // for all buffers, those in slots, too
};

}  // namespace headrace
