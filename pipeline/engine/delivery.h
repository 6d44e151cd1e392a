// Hands finished batches out, to each replica in the same order.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "headrace/devices/base/trace.h"
#include "headrace/pipeline/batch.h"
#include "headrace/pipeline/engine/bad_record_account.h"
#include "headrace/pipeline/engine/given_rows.h"
#include "headrace/pipeline/engine/ready_order.h"
#include "headrace/pipeline/engine/ring.h"
#include "headrace/pipeline/engine/run_plan.h"

namespace headrace {

// One per replica. Used by the thread that takes its batches; others read its counters.
struct alignas(64) Consumer {
  Consumer(const RunPlan& run, Quarantine* quarantine, bool lists) : bad(run, quarantine, lists) {}

  std::atomic<std::uint64_t> taken{0};  // batches, counted from the run's first: its next turn
  std::atomic<std::uint64_t> examples{0}, wait_ns{0}, ready_sum{0}, asked{0}, asked_ready{0};
  BadRecordAccount bad;
  std::string failed;           // the error it received; empty: none
  StageClock busy;              // between two calls to next(), except waits in another replica's next()
  WaitClock waits;              // in next()
  std::uint64_t left_ns = 0;    // when it last left next(); 0: never
  std::uint64_t left_rows = 0;  // examples it then had
  std::uint64_t left_batch = 0;
  std::uint64_t waited_ns = 0;  // by its thread in next(), at that time
  TraceRing* trace = nullptr;   // null: no tracing
};

class Delivery {
 public:
  // Explains what a begun batch that is not out is waiting for.
  class StallReport {
   public:
    virtual ~StallReport() = default;
    virtual std::string why_not_out(const SlotMark::Value& mark) const = 0;
  };

  // `trace` null: no tracing. REQUIRES: all arguments outlive this.
  Delivery(const RunPlan& run, Ring& ring, const StallReport& stalls, Trace* trace);

  // See Loader::next(). The batch keeps `owner`, which owns all parts that it shows.
  std::optional<Batch> next(int replica, std::optional<std::uint64_t> epoch = std::nullopt,
                            std::shared_ptr<const void> owner = nullptr);

  // Returns the first turn in which some replica has not taken its batch. Turns count from RunPlan::first: where
  // all batches are handed out in order, it is the batch's number.
  std::uint64_t position() const noexcept;
  // Returns the batches that all replicas took, and those of the earlier parts of the run.
  BatchSet handed_out() const;
  const std::vector<std::unique_ptr<Consumer>>& consumers() const noexcept { return consumers_; }
  // Frees the rows that batches returned. No batch may be taken afterwards.
  void free_memory() noexcept { spare_rows_->close(); }

 private:
  using LeftOut = std::map<std::uint64_t, EmptyBatch>;

  bool is_over(std::uint64_t turn) const;
  void count_ready(Consumer& consumer, std::uint64_t turn) const;
  void count_ready_in_order(Consumer& consumer, std::uint64_t sequence) const;
  std::string why_not_out(std::uint64_t sequence, int replica) const;
  std::optional<std::uint64_t> untaken(int replica, std::uint64_t sequence) const;
  template <typename Done>
  bool wait_within(const Done& done, double seconds) const;
  template <typename Done, typename Stall>
  void wait_until(Consumer& consumer, const Done& done, const Stall& stall) const;
  std::uint64_t wait(Consumer& consumer, std::uint64_t turn, int replica);
  std::uint64_t wait_for_batch(Consumer& consumer, std::uint64_t turn, int replica);
  std::uint64_t wait_for_any(Consumer& consumer, std::uint64_t turn, int replica);
  std::uint64_t first_unchosen() const;
  void refuse_stopped() const;
  static void arrive(Consumer& consumer, std::uint64_t now);
  void leave(Consumer& consumer, std::uint64_t sequence, std::uint64_t arrived, std::uint64_t rows) const;
  std::optional<Batch> end_stream(Consumer& consumer) const;
  Batch hand_out(Consumer& consumer, Slot& slot, std::uint64_t turn, int replica, bool ends_epoch,
                 std::shared_ptr<const void> owner) const;
  bool pass_empty(Consumer& consumer, std::uint64_t sequence, std::uint64_t turn);
  template <typename Made>
  void account(Consumer& consumer, const Made& batch) const;
  LeftOut::iterator leave_out(std::uint64_t sequence, std::uint64_t turn);
  bool is_last_of_epoch(const Slot& slot, std::uint64_t turn) const;
  std::uint64_t end_of_epoch(Consumer& consumer, Slot& slot, std::uint64_t turn, int replica);
  std::uint64_t look_for_end(Consumer& consumer, Slot& slot, std::uint64_t turn, int replica);
  bool comes_unaided(std::uint64_t turn) const;
  bool gives_rows(const SlotShare& share) const noexcept;

  // The end of a batch's epoch, for the replicas that have not taken it.
  struct Ending {
    std::uint64_t end = 0;  // see end_of_epoch()
    int replicas = 0;
  };

  const RunPlan& run_;
  // Held while an empty batch is told from others, so that none leaves it out that another replica looks at.
  std::mutex leaving_;
  std::map<std::uint64_t, Ending> endings_;  // by turn; by leaving_
  LeftOut left_out_;                         // that some replica has not passed; by leaving_ and the ring's mutex
  Ring& ring_;
  const StallReport& stalls_;
  std::optional<ReadyOrder> ready_order_;  // by the ring's mutex; std::nullopt: in the order of their numbers
  std::optional<Quarantine> quarantine_;   // by the consumer of replica 0
  std::vector<std::unique_ptr<Consumer>> consumers_;
  std::shared_ptr<SpareRows> spare_rows_;
};

}  // namespace headrace
