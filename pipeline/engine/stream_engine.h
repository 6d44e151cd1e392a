// A running plan. An assembler thread begins batches in a ring of slots, compute threads write their rows,
// readers fetch what is not in memory, consumers take finished batches in order and give them back.
#pragma once

#include <tbb/task_arena.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "headrace/devices/base/trace.h"
#include "headrace/pipeline/engine/autotuner.h"
#include "headrace/pipeline/engine/bad_record_limit.h"
#include "headrace/pipeline/engine/copy_clock.h"
#include "headrace/pipeline/engine/quarantine.h"
#include "headrace/pipeline/engine/resident_samples.h"
#include "headrace/pipeline/engine/work_board.h"
#include "headrace/pipeline/loader.h"
#include "headrace/pipeline/operations/memory_budget.h"
#include "headrace/pipeline/operations/mixer.h"
#include "headrace/pipeline/plan/device_split.h"
#include "headrace/pipeline/plan/index/batch_schedule.h"
#include "headrace/pipeline/plan/resident_choice.h"
#include "headrace/pipeline/plan/row_copier.h"
#include "headrace/pipeline/plan/scan/engine_thread.h"
#include "headrace/pipeline/plan/scan/unjudged_records.h"

namespace headrace {

// Shared by its threads: one that hangs in a foreign function keeps it alive, without the devices' memory.
class StreamEngine : public std::enable_shared_from_this<StreamEngine> {
 public:
  StreamEngine(const Dataset& dataset, DeviceGroup& devices, const LoaderOptions& options);

  // Starts the threads; once, after construction.
  void start();
  // Ends or gives up the threads and frees the devices' memory. Nothing else may be called afterwards.
  void shut_down() noexcept;

  std::optional<Batch> next(int replica);
  void stop() noexcept;
  LoaderState state() const;
  LoaderStats stats() const;
  std::string trace_json() const;

  const BatchLayout& layout() const noexcept { return layout_; }
  const BatchSchedule& schedule() const noexcept { return schedule_; }
  const Fields& fields() const noexcept { return plan_.fields; }  // of a finished sample
  int threads() const noexcept { return active_threads_.load(std::memory_order_relaxed); }
  bool tuned() const noexcept { return tuned_.load(std::memory_order_relaxed); }
  std::vector<Choice> choices() const;
  // True in a process forked off after the start: there the threads do not exist.
  bool is_forked() const noexcept;

 private:
  friend class SlotLease;
  // One a replica; used by its consumer, read by others.
  struct alignas(64) Consumer {
    std::atomic<std::uint64_t> taken{0};  // sequence of the batch it takes next
    std::atomic<std::uint64_t> examples{0}, stall_ns{0}, ready_sum{0}, asked{0}, asked_ready{0};
    std::atomic<std::uint64_t> bad{0};                  // records of the global batches it took
    std::atomic<std::uint64_t> warned{0}, oriented{0};  // the same
    std::uint64_t epoch = 0, epoch_bad = 0;             // the same of the epoch it is in
    std::string failed;                                 // the error it was given, empty: none
    StageClock busy;              // between two calls of next(), but for waiting in that of another replica
    WaitClock waits;              // in next()
    std::uint64_t left_ns = 0;    // when it last left next(); 0: never
    std::uint64_t left_rows = 0;  // with this many examples
    std::uint64_t waited_ns = 0;  // by its thread in next(), when it left
    TraceRing* trace = nullptr;   // null: nothing is traced
  };

  Slot& slot_of(std::uint64_t sequence) const noexcept { return *slots_[sequence % slots_.size()]; }
  bool copies(const SlotShare& share) const noexcept { return static_cast<bool>(share.device); }
  bool copies() const noexcept;

  const DeviceConversion* conversion() const noexcept { return conversion_ ? &*conversion_ : nullptr; }

  // budgets.cpp: construction.
  void allocate_slots();
  void note(Choice choice);

  // A thread's top function: what `body` throws ends the stream for every consumer that finds no batch.
  template <typename Body>
  void run_thread(const ThreadState& state, const Body& body);
  void break_off(const ThreadState& state, const std::exception& error) noexcept;

  // assembler.cpp: one thread.
  enum class Turn { kStop, kBegin, kCopy };
  void assemble();
  Turn next_turn(std::uint64_t next, std::uint64_t next_copy);
  bool may_begin(std::uint64_t sequence) const;
  bool may_copy(std::uint64_t sequence) const;
  bool is_passed(const Slot& slot) const;
  void wait_for_slot(std::unique_lock<std::mutex>& lock, std::uint64_t sequence);
  std::uint64_t begin_counted(std::uint64_t sequence, std::uint64_t idle_since);
  void begin(std::uint64_t sequence);
  FetchedBy fetched_by() const;
  bool replays(std::uint64_t sequence) const noexcept;
  void replay(std::uint64_t sequence);
  void give_up(std::uint64_t sequence, Failure failure);
  void revive(std::uint64_t sequence);
  void begin_copies(std::uint64_t sequence);
  void copy(std::uint64_t sequence);

  // workers.cpp: compute threads and readers.
  void compute(ThreadState& state, int number);
  std::uint64_t run_work(const Work& work, std::uint64_t begin, ThreadState& state, Scratch& scratch,
                         ChargedBytes& charged);
  static void count(ThreadState& state, const Scratch& scratch, std::uint64_t rows, std::uint64_t ns);
  std::span<const std::byte> look_ahead(std::span<const std::uint64_t> records) const noexcept;
  void run_rows(const Work& work, ThreadState& state, Scratch& scratch, ChargedBytes& charged);
  void run_fetched(FetchedRecord& fetched, ThreadState& state, Scratch& scratch, ChargedBytes& charged);
  template <typename Run>
  void guard(Slot& slot, std::int64_t row, Run run);
  std::span<const std::byte> find_cached(std::uint64_t record, std::vector<std::byte>& scratch) const;
  RecordView read_record(std::uint64_t record, std::vector<std::byte>& scratch, ThreadState& state) const;
  RecordView read_once(std::uint64_t record, std::vector<std::byte>& scratch, ThreadState& state) const;
  void read(ThreadState& state, int number);
  void wrote(Slot& slot, std::int64_t count, ThreadState& state);
  bool mix_next(Slot& slot);
  void run_pairs(const Work& work, ThreadState& state);
  void make_ready(Slot& slot);

  // bad_rows.cpp
  void fail_row(Slot& slot, Failure failure);
  void settle(Slot& slot, ThreadState& state);
  void substitute(Slot& slot, BadRecord& bad, ThreadState& state);
  void take_notes(Slot& slot, std::int64_t row, ImageNotes& notes);
  void count_bad(Consumer& consumer, const Slot& slot, int replica);
  void list_bad(const Slot& slot);
  void limit_bad(Consumer& consumer, const Slot& slot) const;
  void count_noted(Consumer& consumer, const Slot& slot, int replica);

  // consumer.cpp: next().
  void refuse_fork() const;
  void wait_until_ready(const Slot& slot, std::uint64_t sequence, int replica);
  void arrive(Consumer& consumer, std::uint64_t sequence, std::uint64_t now);
  void leave(Consumer& consumer, std::uint64_t sequence, std::uint64_t arrived, std::uint64_t rows);
  void release(Slot& slot, int replica, Stream* consumer) noexcept;
  void raise_broken_off(std::unique_lock<std::mutex>& lock, int replica);
  static void notify_assembler(const std::weak_ptr<StreamEngine>& engine);

  // tuning.cpp: by the consumer of replica 0.
  void tune(std::uint64_t sequence, std::uint64_t now);
  void begin_window(std::uint64_t sequence, std::uint64_t now);
  TuningWindow end_window(std::uint64_t now) const;
  void apply_tuning();

  // The sequence of the first batch that some replica has not taken.
  std::uint64_t position() const;

  // engine_stats.cpp
  std::vector<StageStats> stage_stats() const;
  StageStats read_stats() const;
  void add_compute_stats(std::vector<StageStats>& stages) const;
  StageStats copy_stats() const;
  StageStats consumer_stats() const;

  // watchdog.cpp
  std::string whom_we_wait_for(const Slot& slot, std::uint64_t sequence, int replica) const;
  std::string what_threads_do() const;

  StreamPlan plan_;
  DeviceGroup* devices_;
  LoaderOptions options_;
  int threads_;       // that exist
  int reader_count_;  // the same
  DeviceSplit split_;
  ResidentChoice residency_;
  StreamPlan host_;  // of `plan_`, without what the devices do
  BatchSchedule schedule_;
  BadRecordLimit bad_limit_;
  UnjudgedRecords unjudged_;
  std::uint64_t fingerprint_;
  BatchLayout layout_;  // of the rows that the host writes
  MemoryBudget memory_budget_, pinned_budget_;
  SampleProgram program_;
  std::optional<RowCopier> copier_;  // where rows are only copied
  Stores stores_ = Stores::kCached;  // into the slots
  std::vector<Mixer> mixers_;
  std::optional<Quarantine> quarantine_;  // by the consumer of replica 0
  std::uint64_t first_ = 0;               // sequence of the first batch
  long process_;
  std::uint64_t start_ns_;

  std::optional<DeviceConversion> conversion_;  // nothing where the host does everything
  std::optional<ResidentSamples> resident_;     // nothing where the devices keep none; by the assembler thread
  std::atomic<std::uint64_t> resident_records_{0};
  std::vector<std::unique_ptr<Slot>> slots_;
  std::shared_ptr<Trace> trace_;                         // null: nothing is traced
  std::vector<std::unique_ptr<CopyClock>> copy_clocks_;  // one a replica; null where nothing is copied
  std::vector<std::unique_ptr<Stream>> copy_streams_;    // one a replica; null where nothing is copied
  std::vector<Consumer> consumers_;
  std::unique_ptr<WorkBoard> board_;
  tbb::task_arena arena_;

  mutable std::mutex mutex_;
  std::condition_variable ready_;      // for consumers
  std::condition_variable assembler_;  // a slot came back, or was written
  std::optional<Failure> broken_off_;  // by mutex_: what ended one of the threads
  std::atomic<bool> stopped_{false};
  std::atomic<std::uint64_t> first_batch_ns_{0};

  // By the consumer of replica 0.
  Autotuner tuner_;
  struct Mark {
    std::uint64_t from_sequence = 0;  // the window begins with this batch
    std::uint64_t ns = 0, examples = 0, stall_ns = 0, waits_ns = 0, read_ns = 0;
    bool open = false;
  } window_;
  std::atomic<int> active_threads_{0}, active_readers_{0};
  std::atomic<bool> tuned_{false};
  mutable std::mutex choices_mutex_;
  std::vector<Choice> choices_;  // by choices_mutex_

  std::shared_ptr<ThreadState> assembling_ = std::make_shared<ThreadState>(1);
  std::vector<EngineThread> workers_;
  std::vector<EngineThread> readers_;
  std::optional<EngineThread> assembler_thread_;
};

}  // namespace headrace
