// Counts a replica's bad records, warnings and oriented images, and enforces the limit.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "headrace/pipeline/engine/bad_records.h"
#include "headrace/pipeline/engine/run_plan.h"
#include "headrace/pipeline/engine/slot.h"

namespace headrace {

// The bad records of a batch that is not handed out and whose slot was reused.
struct EmptyBatch {
  BatchPosition position;
  std::optional<Failure> failure;
  std::vector<BadRecord> bad, warned;
  std::uint64_t oriented = 0;
  bool ends_epoch = false;  // no batch of the epoch is left after it
  int replicas = 0;         // that have not passed it
};

// Every replica counts for itself what all replicas see, so that all are refused the same batch. Any thread may
// read the counters.
class BadRecordAccount {
 public:
  // `quarantine` null: no list is kept. `lists`: true for one of several replicas, which writes the list.
  BadRecordAccount(const RunPlan& run, Quarantine* quarantine, bool lists)
      : run_(run), quarantine_(quarantine), lists_(lists) {}

  // Adds the counts of a batch that is out, as a Slot or EmptyBatch. Throws DataError if the epoch, or the
  // equivalent number of a stream's examples, exceeds the limit of bad records.
  template <typename Made>
  void add(const Made& batch);

  // Returns whether none of the `batches` that follow a batch, which is not yet added, may have a good example.
  bool allows_empty(const Slot& slot, std::uint64_t batches) const noexcept {
    const std::uint64_t before = whole_ == run_.whole_of(slot.position) ? bad_of_whole_ : 0;
    return before + slot.bad.size() + batches <= run_.bad_limit.max_bad();
  }

  std::uint64_t bad() const noexcept { return bad_.load(std::memory_order_relaxed); }
  std::uint64_t warned() const noexcept { return warned_.load(std::memory_order_relaxed); }
  std::uint64_t oriented() const noexcept { return oriented_.load(std::memory_order_relaxed); }

 private:
  template <typename Made>
  void list(const Made& batch) const;
  template <typename Made>
  void limit(const Made& batch);

  const RunPlan& run_;
  Quarantine* quarantine_;
  bool lists_;
  std::uint64_t whole_ = 0, bad_of_whole_ = 0;  // of the whole to which the limit applies
  std::atomic<std::uint64_t> bad_{0}, warned_{0}, oriented_{0};
};

}  // namespace headrace
