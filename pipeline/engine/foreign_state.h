// Why a loader's state does not fit a run.
#pragma once

#include <cstdint>
#include <string>

#include "headrace/pipeline/plan/planner.h"
#include "headrace/pipeline/plan/scan/filter_failures.h"

namespace headrace {

// What a run with this fingerprint has that one of `plan` and `seed` has not: "its seed was 3, here it is 4".
// Tries what users change, the seed, the batch and a stage that was left out; else says what is left. Takes up to
// a second.
std::string describe_difference(StreamPlan plan, std::uint64_t seed, const FilterFailures& filter_failures,
                                std::uint64_t fingerprint);

}  // namespace headrace
