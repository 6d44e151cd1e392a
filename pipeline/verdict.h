// What bounds a running plan, and what would change it, computed from its counters alone.
//
// The model. A plan is a line of stations that work at the same time: readers, compute threads, the assembler, the
// copy streams, the consumers. From the counters of an interval each station has a cost, the nanoseconds of its
// threads' time that one example delivered took, and so a rate it cannot exceed: threads / cost. With slots to
// work ahead in, the line moves at the rate of its slowest station; with a single slot the engine and the consumer
// take turns, and their costs add up. Stages that run on the same threads share their station; its name is that of
// the one that takes most of the time. What the model leaves out: that stations compete for the machine's cores
// and memory, and that costs vary from example to example more than the slots level out.
#pragma once

#include <string>
#include <vector>

#include "headrace/pipeline/stats.h"

namespace headrace {

// The rate if something were different.
struct WhatIf {
  std::string what = {};         // "one more core and a compute thread on it"
  double images_per_second = 0;  // 0: nothing would bound it
  std::string bottleneck = {};   // then; empty: none
  // Where it was tried: what the plan as it is delivered in turn with it, in images/s. 0: it was computed, and is
  // to be compared with the ceiling.
  double instead_of = 0;
};

struct Verdict {
  std::string bottleneck = {};           // a stage's name; empty where nothing was delivered
  std::string kind = {};                 // "disk", "CPU", "copy" or "consumer"
  double ceiling_images_per_second = 0;  // predicted for the plan as it runs; never below what was measured
  double measured_images_per_second = 0;
  std::vector<WhatIf> what_ifs = {};

  // "input-bound at decode: CPU; ceiling 900 images/s, measured 880"
  std::string sentence() const;
  // "with twice the readers: 990 images/s (+10 %), bound by decode", "(x 5.6)" from three times on; of what was
  // tried "... (10.0 times the 99 without it, in turn) ..."; `what_if` is one of `what_ifs`.
  std::string sentence(const WhatIf& what_if) const;
};

// `interval` should leave out the start: see LoaderStats::since().
Verdict judge(const LoaderStats& interval);

}  // namespace headrace
