// Turns the stages as written into the engine's plan: index stages first, then decode and operations with a cache
// among them, then batches.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/pipeline/plan/index/index_map.h"
#include "headrace/pipeline/plan/plan.h"

namespace headrace {

// The plan after push-down.
struct StreamPlan {
  SourcePtr source;
  std::vector<Stage> index_stages;         // in the order written
  std::vector<SampleStage> sample_stages;  // in the order written
  std::size_t cached_stages = 0;           // leading stages whose result the cache holds
  std::shared_ptr<SampleCache> cache;      // null: none
  std::optional<BatchOptions> batch;
  std::vector<PlannedOperation> batch_operations;  // batch-level ones, in the order written
  int prefetch = 2;
  Fields fields;  // of a finished sample

  IndexMap index_map(std::uint64_t seed) const;
  std::uint64_t steps_per_epoch(std::uint64_t records) const;  // REQUIRES: `batch` is set
  // Return the identity of the cache's contents, and of the whole stream.
  std::uint64_t cache_fingerprint() const;
  std::uint64_t fingerprint() const;
};

// Throws ConfigError if the source is a stream: `what` takes records by their numbers, or needs their count.
void refuse_stream(const Source& source, const std::string& what);

// Throws ConfigError, naming the stage and the reason, if the plan is invalid.
StreamPlan make_stream_plan(const PlanPtr& plan);

// `on_device`: indices of the sample stages to mark as the devices'.
std::string explain_plan(const StreamPlan& plan, const std::vector<std::size_t>& on_device = {});

}  // namespace headrace
