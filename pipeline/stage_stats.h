// What one stage of a running plan did: its share of `headrace explain`.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/pipeline/wait_histogram.h"

namespace headrace {

enum class StageKind {
  kRead,      // Source::read: blocks on a disk or a network
  kDecode,    // encoded bytes to pixels
  kOperate,   // operations, mixing examples, and writing the rows of a batch
  kAssemble,  // choosing a batch's records and giving them out
  kCopy,      // to a device's own memory
  kConsume,   // between two calls of next()
};

// Lower-case, as "read".
const char* to_string(StageKind kind) noexcept;

// Times are of the wall clock, summed over the threads that run the stage.
struct StageStats {
  std::string name = {};
  StageKind kind = StageKind::kOperate;
  int threads = 1;          // that may run it at once
  std::uint64_t items = 0;  // examples that went through it
  std::uint64_t busy_ns = 0;
  // What its threads waited for their next piece of work. Stages that run on the same threads share them.
  std::uint64_t wait_ns = 0;
  WaitHistogram waits = {};

  double ns_per_item() const noexcept;
  // Fraction of its threads' time in `elapsed_ns`.
  double occupancy(std::uint64_t elapsed_ns) const noexcept;
};

}  // namespace headrace
