// Hands the examples of begun batches to the engine's threads, oldest batch first. There is no queue of tasks:
// a batch in its slot is divided by counting up how much of it was given away.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "headrace/pipeline/engine/charged_bytes.h"
#include "headrace/pipeline/engine/slot.h"
#include "headrace/pipeline/record.h"

namespace headrace {

// A record a reader has fetched, on its way to a compute thread.
struct FetchedRecord {
  Slot* slot = nullptr;
  std::int64_t row = 0;
  std::span<const std::byte> cached;  // the cache's sample; empty: `view` holds the source's bytes
  RecordView view;
  std::vector<std::byte> scratch;  // what `view` may point to; reused
  ChargedBytes charged;            // for `scratch`
};

enum class WorkKind { kFetched, kRows, kPairs };

// A piece of work for a compute thread: a fetched record, or `count` rows, or pairs to mix, of a slot from
// `first`.
struct Work {
  WorkKind kind = WorkKind::kRows;
  FetchedRecord* fetched = nullptr;
  Slot* slot = nullptr;
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool parked = false;  // the thread was parked while it waited for this
};

enum class FetchedBy { kComputeThread, kReader };

// Thread-safe.
class WorkBoard {
 public:
  // `slots` is the ring; batch n is in slots[n % size]. `fetches` bounds the records read ahead; their bytes are
  // charged to `budget`, which must outlive this.
  WorkBoard(std::vector<std::unique_ptr<Slot>>& slots, std::uint64_t first_sequence, std::size_t fetches,
            MemoryBudget& budget);

  // Only the compute threads and readers with a number below these get anything; the others are parked.
  void allow(int threads, int readers);

  // The next batch is in its slot: readers fetch its records, or compute threads read them themselves.
  void publish(std::uint64_t sequence, FetchedBy fetched_by);

  // All that was given away of the slot's batch is done; `pairs` of its rows are to be mixed. Any thread.
  void publish_pairs(Slot& slot, std::int64_t pairs);

  // Waits for work for this compute thread; false after stop().
  bool next_work(Work& work, int thread);
  // Waits for a record for this reader to read and a buffer to read it into; false after stop().
  bool next_read(FetchedRecord*& fetch, int reader);
  void fetched(FetchedRecord* fetch);
  // Gives the buffer back.
  void recycle(FetchedRecord* fetch);

  void stop();

 private:
  bool claim(Work& work);
  bool claim_pairs(Work& work);
  bool claim_fetched(Work& work);
  bool claim_read(FetchedRecord& fetch);

  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable reads_;
  std::condition_variable parked_;
  // The rest, and the slots' counts of what was given away: by mutex_.
  bool stopped_ = false;
  int threads_ = std::numeric_limits<int>::max();
  int readers_ = std::numeric_limits<int>::max();
  std::vector<std::unique_ptr<Slot>>& slots_;
  std::vector<FetchedRecord> fetches_;
  std::uint64_t published_;    // batches below this are in their slots
  std::uint64_t oldest_;       // that may have blocks left
  std::uint64_t oldest_read_;  // that may have records left to read
  std::vector<FetchedRecord*> free_;
  std::vector<FetchedRecord*> full_;  // a ring: fetched, waiting for a compute thread
  std::size_t full_first_ = 0, full_count_ = 0;
  std::vector<Slot*> mixing_;  // that have pairs left to mix; room for every slot
};

}  // namespace headrace
