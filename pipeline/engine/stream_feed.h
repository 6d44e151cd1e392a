// Pulls the records of a stream ahead of the batches that will hold them.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headrace/pipeline/engine/ring.h"
#include "headrace/pipeline/engine/run_plan.h"
#include "headrace/pipeline/engine/stream_mark.h"
#include "headrace/pipeline/operations/machinery/memory_budget.h"
#include "headrace/pipeline/plan/index/batch_schedule.h"

namespace headrace {

// One thread pulls, the assembler takes. A batch may begin once all records that it can hold have arrived and it
// is known whether another batch follows: this makes its content a function of the stream alone. A stream of
// shards has epochs: it is pulled again when it has ended.
class StreamFeed {
 public:
  // Holds back the ring's batches. Throws ConfigError if the state that the run starts from is of no stream.
  // REQUIRES: all arguments outlive this.
  StreamFeed(const RunPlan& run, Ring& ring, MemoryBudget& budget);

  // Runs in the thread: pulls until the stream ends, its last batch has arrived, or stop().
  void run(ThreadState& state);

  // Returns the number of records of an epoch once one has ended (BatchSchedule::end_at()). Called by the
  // assembler.
  std::optional<std::uint64_t> records() const;
  // Gives the slot the bytes and numbers of its located records in exchange for its previous ones. Records before
  // those that later batches need are not requested any more.
  void take(Slot& slot);
  // Adds what a run needs that continues from the state's batches.
  void save(LoaderState& state) const;

  void stop() noexcept;

 private:
  // The records of an epoch that wait, from record `first` on.
  struct Waiting {
    std::uint64_t epoch = 0, first = 0;
    std::deque<StreamedRecord> records = {};
    std::uint64_t end() const noexcept { return first + records.size(); }
  };
  struct Needed {
    std::vector<std::uint64_t> records;
    std::vector<std::size_t> of_batches;
  };
  class Pulled;

  void place_window(const StreamMark& mark);
  [[noreturn]] static void refuse_start();
  StreamPlace place_of(std::uint64_t sequence) const;
  template <typename Open>
  void open(std::uint64_t record, std::unique_ptr<Pulled>& stream, ThreadState& state, const Open& opened) const;
  std::unique_ptr<Pulled> open_at(const StreamMark& from) const;
  ShardedSourcePtr shards() const;
  void pull_all(std::unique_ptr<Pulled>& stream, ThreadState& state);
  std::uint64_t skip(Pulled& stream, std::uint64_t count, ThreadState& state) const;
  bool wait_for_room();
  void note_mark(const Pulled& stream, StreamPlace at);
  std::optional<StreamedRecord> pull(Pulled& stream, std::uint64_t record, ThreadState& state);
  Needed needed_before(std::uint64_t end);  // by mutex_
  std::optional<StreamMark> fill_window(StreamPlace window, std::unique_ptr<Pulled>& stream, ThreadState& state);
  void allow_filled(const Needed& needed, std::size_t there, std::uint64_t end);
  void charge(StreamedRecord& record);
  void add(StreamedRecord record, Pulled& stream);
  bool holds(std::uint64_t records, std::uint64_t sequence) const;
  bool is_whole(std::uint64_t epoch) const;
  bool end_epoch(std::uint64_t records, bool at_end);
  void break_at(const std::exception& cause);
  void recycle(StreamedRecord& record);
  void forget_before(StreamPlace next);
  StreamedRecord new_record();

  const RunPlan& run_;
  Ring& ring_;
  const std::uint64_t ahead_;  // batches that may wait for a slot, while there is memory
  StreamPlace start_;          // of the run's first batch; changed by the thread
  std::uint64_t number_ = 0;   // of the latest record; by the thread
  // The records of the window that the run starts in, if the state says where they lie; by the thread.
  std::optional<PlacedRecords> placed_;
  mutable std::mutex mutex_;
  std::condition_variable room_;
  // By mutex_.
  BatchSchedule schedule_;
  std::deque<Waiting> waiting_;               // the last one is being pulled
  std::deque<StreamMark> marks_;              // of a stream of shards, ascending
  std::vector<std::vector<std::byte>> free_;  // buffers for reuse
  std::uint64_t taken_;    // batches below this were begun, or handed out by an earlier part of the run
  std::uint64_t allowed_;  // batches below this may begin
  std::optional<std::uint64_t> records_;
  bool stopped_ = false;
  ChargedBytes charged_;  // for all buffers, including those in slots
  MemoryBudget& budget_;
};

}  // namespace headrace
