// Measures short windows of the running stream for the autotuner and allows the lanes and readers that it chooses.
#pragma once

#include <atomic>
#include <cstdint>

#include "headrace/pipeline/engine/autotuner.h"
#include "headrace/pipeline/engine/compute.h"
#include "headrace/pipeline/engine/delivery.h"
#include "headrace/pipeline/engine/readers.h"
#include "headrace/pipeline/engine/slot_memory.h"

namespace headrace {

// Used by the consumer of replica 0, except for what others may read.
class Tuning {
 public:
  // Allows the initial lanes and readers.
  Tuning(const RunPlan& run, const Ring& ring, const Delivery& delivery, const Readers& readers, Compute& compute,
         ReadAhead& read_ahead, Choices& choices);

  // Called before the replica takes its next batch.
  void observe();

  int lanes() const noexcept { return lanes_now_.load(std::memory_order_relaxed); }
  int readers() const noexcept { return readers_now_.load(std::memory_order_relaxed); }
  bool settled() const noexcept { return settled_.load(std::memory_order_relaxed); }

 private:
  struct Sums {
    std::uint64_t ns = 0, examples = 0, consumer_wait_ns = 0, waits_ns = 0, read_ns = 0;
  };

  Sums sums(std::uint64_t now) const;
  TuningWindow window_to(const Sums& now) const;
  void begin_window(std::uint64_t sequence, std::uint64_t now);
  void apply();

  const RunPlan& run_;
  const Ring& ring_;
  const Delivery& delivery_;
  const Readers& readers_;
  Compute& compute_;
  ReadAhead& read_ahead_;
  Choices& choices_;
  Autotuner tuner_;
  Sums begin_;                       // of the window
  std::uint64_t from_sequence_ = 0;  // the window begins with this batch
  bool open_ = false;                // it has begun
  std::atomic<int> lanes_now_{0}, readers_now_{0};
  int decoding_now_ = -1;  // of 256 rows on devices
  std::atomic<bool> settled_{false};
};

}  // namespace headrace
