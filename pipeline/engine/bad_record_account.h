// What a replica has been given of bad records, warnings and oriented images, and where that is too much.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "headrace/pipeline/engine/bad_records.h"
#include "headrace/pipeline/engine/run_plan.h"
#include "headrace/pipeline/engine/slot.h"

namespace headrace {

// Every replica counts for itself what all of them see, so that all are refused the same batch. The counters may
// be read by any thread.
class BadRecordAccount {
 public:
  // `quarantine` null: no list is kept. Of several replicas one `lists` what it sees.
  BadRecordAccount(const RunPlan& run, Quarantine* quarantine, bool lists)
      : run_(run), quarantine_(quarantine), lists_(lists) {}

  // Of a batch that is out. DataError where the epoch, or so many examples of a stream, have more bad records than
  // they may have.
  void add(const Slot& slot);

  std::uint64_t bad() const noexcept { return bad_.load(std::memory_order_relaxed); }
  std::uint64_t warned() const noexcept { return warned_.load(std::memory_order_relaxed); }
  std::uint64_t oriented() const noexcept { return oriented_.load(std::memory_order_relaxed); }

 private:
  void list(const Slot& slot) const;
  void limit(const Slot& slot);

  const RunPlan& run_;
  Quarantine* quarantine_;
  bool lists_;
  std::uint64_t whole_ = 0, bad_of_whole_ = 0;  // of what the limit is a share of
  std::atomic<std::uint64_t> bad_{0}, warned_{0}, oriented_{0};
};

}  // namespace headrace
