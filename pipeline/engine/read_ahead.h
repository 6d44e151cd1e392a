// Records that readers fetch before compute needs them: a fixed number of buffers, and the readers' waits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "headrace/pipeline/engine/ring.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"
#include "headrace/pipeline/record.h"

namespace headrace {

struct FetchedRecord {
  Slot* slot = nullptr;
  std::int64_t example = 0;  // of the slot
  FoundSample cached;        // a cache's sample; empty: `view` holds the source's bytes
  RecordView view;
  std::vector<std::byte> scratch;  // memory that `view` may point to; reused
  ChargedBytes charged;            // for `scratch`
};

// Thread-safe.
class ReadAhead {
 public:
  // Reads at most `buffers` records ahead; their bytes are charged to `budget`. REQUIRES: `ring` and `budget`
  // outlive this.
  ReadAhead(Ring& ring, std::size_t buffers, MemoryBudget& budget);

  // Offers the records of this batch, which is in its slot, for reading. Called by the assembler.
  void offer(std::uint64_t sequence);
  // Gives records only to readers with a number below `readers`.
  void allow(int readers);

  // Waits for the oldest record to read and a buffer for it; returns null after stop(). Called by readers.
  FetchedRecord* next(int reader);
  void put(FetchedRecord* record);
  // Returns records in the order of put(); null if there is none. Called by compute.
  FetchedRecord* take();
  bool empty() const;
  void give_back(FetchedRecord* record);

  void stop() noexcept;

 private:
  bool claim(FetchedRecord& record);

  Ring& ring_;
  mutable std::mutex mutex_;
  std::condition_variable reads_;   // for readers that are allowed to read
  std::condition_variable parked_;  // for the others: a notification for one reader is not lost on them
  // By mutex_.
  bool stopped_ = false;
  int readers_ = 0;
  std::uint64_t offered_;  // batches below this are in their slots
  std::uint64_t oldest_;   // batch that may have records left to read
  std::vector<FetchedRecord> records_;
  std::vector<FetchedRecord*> free_;
  std::vector<FetchedRecord*> fetched_;  // a ring
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace headrace
