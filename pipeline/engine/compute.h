// Host computation: writes the rows of begun batches and mixes them, oldest batch first.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "headrace/pipeline/engine/lanes.h"
#include "headrace/pipeline/engine/read_ahead.h"
#include "headrace/pipeline/engine/ring.h"
#include "headrace/pipeline/engine/row_errors.h"
#include "headrace/pipeline/engine/run_plan.h"

namespace headrace {

// A batch is divided by a counter of the work claimed; there is no queue of tasks.
class Compute final : public LaneBody {
 public:
  // `stores`: how rows are written to the slots. REQUIRES: all arguments outlive this, and lanes that return late.
  Compute(const RunPlan& run, Ring& ring, const RecordReader& reader, const RowErrors& errors,
          ReadAhead& read_ahead, Stores stores, Budgets& budgets);

  Lanes& lanes() noexcept { return lanes_; }
  const Lanes& lanes() const noexcept { return lanes_; }

  // Offers a batch that is in its slot, in Writing. `by_readers`: readers fetch its records. Called by the
  // assembler.
  void offer(std::uint64_t sequence, bool by_readers);
  // Announces one more fetched record. Called by readers.
  void wake() { lanes_.wake(1); }
  // Lets devices decode `rows` of every 256 rows, unless they cannot decode them. Thread-safe.
  void share_decoding(int rows) noexcept { decoded_on_device_.store(rows, std::memory_order_relaxed); }

  // Completes `count` of the slot's pending rows or pairs. The thread that completes the last of them sees all
  // that the others wrote, and moves the batch on.
  void complete(Slot& slot, std::int64_t count, ThreadState& state);

  bool run_next(Lane& lane) override;
  bool has_work() const noexcept override;

 private:
  // A piece of work: a fetched record, or `count` rows, or pairs to mix, of a slot, starting at `first`.
  enum class WorkKind { kFetched, kRows, kPairs };
  struct Work {
    WorkKind kind = WorkKind::kRows;
    FetchedRecord* fetched = nullptr;
    Slot* slot = nullptr;
    std::int64_t first = 0, count = 0;
  };

  bool claim(Work& work);
  bool claim_pairs(Work& work);
  bool claim_rows(Work& work);
  void run_counted(const Work& work, Lane& lane);
  void run_work(const Work& work, Lane& lane);
  void run_rows(const Work& work, Lane& lane);
  void draw_ahead(const Slot& slot, std::int64_t example, std::int64_t examples_before, std::int64_t end,
                  StepContext& context) const;
  void run_row(Slot& slot, std::int64_t example, const SampleProgram::Rows& rows, StepContext& context,
               ThreadState& state);
  void run_fetched(FetchedRecord& fetched, Lane& lane);
  void choose_decoder(const Slot& slot, std::int64_t example, StepContext& context) const noexcept;
  void run_pairs(const Work& work);
  std::int64_t pairs_of(const Slot& slot, std::size_t mixer) const noexcept;
  bool mix_next(Slot& slot);

  const RunPlan& run_;
  Ring& ring_;
  const RecordReader& reader_;
  const RowErrors& errors_;
  ReadAhead& read_ahead_;
  Stores stores_;
  std::int64_t block_pairs_;                 // claimed by a lane at once
  std::atomic<std::int64_t> block_rows_{1};  // rows claimed at once; the last batch's
  std::atomic<std::uint64_t> offered_;       // batches below this are in their slots
  std::atomic<std::uint64_t> oldest_;        // batch that may have rows left
  std::atomic<int> mixing_{0};               // slots that may have pairs left
  std::atomic<int> decoded_on_device_{0};    // of 256 rows
  Lanes lanes_;
};

}  // namespace headrace
