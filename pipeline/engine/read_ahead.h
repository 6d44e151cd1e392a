// Records that readers fetch before compute needs them: a fixed number of buffers, and where readers wait.
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
  std::int64_t example = 0;           // of the slot's
  std::span<const std::byte> cached;  // the cache's sample; empty: `view` holds the source's bytes
  RecordView view;
  std::vector<std::byte> scratch;  // what `view` may point to; reused
  ChargedBytes charged;            // for `scratch`
};

// Thread-safe.
class ReadAhead {
 public:
  // `buffers` bound what is read ahead; their bytes are charged to `budget`. Both references must outlive this.
  ReadAhead(Ring& ring, std::size_t buffers, MemoryBudget& budget);

  // The assembler: the records of this batch, in its slot, are to be read.
  void offer(std::uint64_t sequence);
  // Only readers with a number below this get anything.
  void allow(int readers);

  // A reader: waits for the oldest record to read and a buffer to read it into; null after stop().
  FetchedRecord* next(int reader);
  void put(FetchedRecord* record);
  // Compute: in the order of put(); null where none is there.
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
  std::uint64_t oldest_;   // that may have records left to read
  std::vector<FetchedRecord> records_;
  std::vector<FetchedRecord*> free_;
  std::vector<FetchedRecord*> fetched_;  // a ring
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace headrace
