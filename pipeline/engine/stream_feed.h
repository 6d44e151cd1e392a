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
  // A record's epoch, and its place in the order in which they are pulled.
  struct Place {
    std::uint64_t epoch = 0, record = 0;
    auto operator<=>(const Place&) const = default;
  };
  // The records of an epoch that wait, from record `first` on.
  struct Waiting {
    std::uint64_t epoch = 0, first = 0;
    std::deque<StreamedRecord> records = {};
    std::uint64_t end() const noexcept { return first + records.size(); }
  };
  struct Mark {
    Place at;
    std::string text;
  };
  class Pulled;

  static std::optional<Mark> parse_mark(const std::string& text);
  Place place_of(std::uint64_t sequence) const;
  void open(Place at, const std::string& mark, std::unique_ptr<Pulled>& stream, ThreadState& state) const;
  void pull_all(std::unique_ptr<Pulled>& stream, ThreadState& state);
  std::uint64_t skip(Pulled& stream, std::uint64_t count, ThreadState& state) const;
  bool wait_for_room();
  void note_mark(const Pulled& stream, Place at);
  bool pull(Pulled& stream, std::uint64_t record, ThreadState& state);
  void charge(StreamedRecord& record);
  void add(StreamedRecord record);
  bool holds(std::uint64_t records, std::uint64_t sequence) const;
  bool is_whole(std::uint64_t epoch) const;
  bool end_epoch(std::uint64_t records, bool at_end);
  void break_at(const std::exception& cause);
  void recycle(StreamedRecord& record);
  void forget_before(Place next);
  StreamedRecord new_record();

  const RunPlan& run_;
  Ring& ring_;
  const std::uint64_t ahead_;  // batches that may wait for a slot, while there is memory
  Place start_;                // of the run's first batch; changed by the thread
  std::uint64_t number_ = 0;   // of the latest record; by the thread
  mutable std::mutex mutex_;
  std::condition_variable room_;
  // By mutex_.
  BatchSchedule schedule_;
  std::deque<Waiting> waiting_;               // the last one is being pulled
  std::deque<Mark> marks_;                    // of a stream of shards, ascending
  std::vector<std::vector<std::byte>> free_;  // buffers for reuse
  std::uint64_t taken_;    // batches below this were begun, or handed out by an earlier part of the run
  std::uint64_t allowed_;  // batches below this may begin
  std::optional<std::uint64_t> records_;
  bool stopped_ = false;
  ChargedBytes charged_;  // for all buffers, including those in slots
  MemoryBudget& budget_;
};

}  // namespace headrace
