// A loader's statistics as JSON: the lines of `headrace explain` and the statistics of a run.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "headrace/pipeline/stats.h"

namespace headrace::tools {

inline double microseconds(const WaitHistogram& waits, double share) { return waits.quantile_ns(share) * 1e-3; }

// Returns "name", "ns_per_item", "occupancy" and the other statistics of a stage over that time.
nlohmann::ordered_json stage_line(const StageStats& stage, std::uint64_t elapsed_ns);

// Returns "bottleneck", "kind", "ceiling_images_per_second", the sentences; `stats` are those of the verdict.
nlohmann::ordered_json verdict_line(const Verdict& verdict, const LoaderStats& stats);

}  // namespace headrace::tools
