// Collects the counters of a running engine on request.
#pragma once

#include <string>

#include "headrace/pipeline/engine/delivery.h"
#include "headrace/pipeline/engine/readers.h"
#include "headrace/pipeline/engine/transfer.h"
#include "headrace/pipeline/stats.h"

namespace headrace {

class Tuning;

// Thread-safe; reads the threads' and lanes' own counters.
class Telemetry final : public Delivery::StallReport {
 public:
  // The parts that hold the counters. REQUIRES: all outlive this.
  struct Parts {
    const RunPlan& run;
    const Budgets& budgets;
    const Ring& ring;
    const ThreadState& assembler;
    const Lanes& lanes;
    const Readers& readers;
    const Transfer& transfer;
  };
  explicit Telemetry(const Parts& parts);

  LoaderStats stats(const Delivery& delivery, const Tuning& tuning) const;

  std::string why_not_out(const SlotMark::Value& mark) const override;

 private:
  std::vector<StageStats> stage_stats(const Delivery& delivery, const Tuning& tuning) const;
  StageStats read_stats(const Tuning& tuning) const;
  void add_compute_stats(const Tuning& tuning, std::vector<StageStats>& stages) const;
  StageStats copy_stats() const;
  StageStats consumer_stats(const Delivery& delivery) const;
  std::string longest_step() const;

  Parts at_;
  std::uint64_t start_ns_;
};

}  // namespace headrace
