#include "headrace/pipeline/dataset.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/engine/planner.h"
#include "headrace/pipeline/plan.h"

namespace headrace {
namespace {

PlanPtr grow(const PlanPtr& before, Stage stage) {
  return std::make_shared<const PlanNode>(PlanNode{.before = before, .stage = std::move(stage)});
}

}  // namespace

std::shared_ptr<MemoryCache> memory(std::uint64_t budget_bytes) {
  return std::make_shared<MemoryCache>(budget_bytes);
}

Dataset Dataset::from(SourcePtr source) {
  if (source == nullptr) throw ConfigError("Dataset::from() was given no source");
  return Dataset(grow(nullptr, SourceStage{std::move(source)}));
}

Dataset Dataset::decode() const { return Dataset(grow(plan_, DecodeStage{})); }

Dataset Dataset::map(const Operations& operations) const {
  return Dataset(grow(plan_, MapStage{operations.list()}));
}

Dataset Dataset::shuffle(ShuffleOptions options) const { return Dataset(grow(plan_, ShuffleStage{options})); }

Dataset Dataset::repeat(std::int64_t times) const {
  if (times < 1) throw ConfigError(fmt::format("repeat({}): at least one pass is needed", times));
  return Dataset(grow(plan_, RepeatStage{static_cast<std::uint64_t>(times)}));
}

Dataset Dataset::take(std::uint64_t count) const { return Dataset(grow(plan_, TakeStage{count})); }

Dataset Dataset::skip(std::uint64_t count) const { return Dataset(grow(plan_, SkipStage{count})); }

Dataset Dataset::shard(std::uint64_t count, std::uint64_t index) const {
  if (index >= count) {
    throw ConfigError(fmt::format("shard({}, {}): the index must be below the number of shards", count, index));
  }
  return Dataset(grow(plan_, ShardStage{.count = count, .index = index}));
}

Dataset Dataset::without_shard(std::uint64_t count, std::uint64_t index) const {
  if (count < 2 || index >= count) {
    throw ConfigError(fmt::format(
        "without_shard({}, {}): it takes two shards or more, and an index below their number", count, index));
  }
  return Dataset(grow(plan_, WithoutShardStage{.count = count, .index = index}));
}

Dataset Dataset::cache(std::shared_ptr<MemoryCache> cache) const {
  if (cache == nullptr) throw ConfigError("cache() was given no cache", "write .cache(memory())");
  return Dataset(grow(plan_, CacheStage{std::move(cache)}));
}

Dataset Dataset::batch(BatchOptions options) const {
  if (options.global < 1) {
    throw ConfigError(fmt::format("batch({}): a batch holds at least one example", options.global));
  }
  return Dataset(grow(plan_, BatchStage{options}));
}

Dataset Dataset::prefetch(int batches) const {
  if (batches < 0) throw ConfigError(fmt::format("prefetch({}): the depth cannot be negative", batches));
  return Dataset(grow(plan_, PrefetchStage{batches}));
}

std::string Dataset::explain() const { return explain_plan(make_stream_plan(plan_)); }

std::uint64_t Dataset::size() const { return make_stream_plan(plan_).index_map(0).size(); }

std::uint64_t Dataset::steps_per_epoch() const {
  const StreamPlan plan = make_stream_plan(plan_);
  if (!plan.batch) throw ConfigError("the plan has no batches yet", "call .batch() before steps_per_epoch()");
  return plan.steps_per_epoch(plan.index_map(0).size());
}

Fields Dataset::fields() const { return make_stream_plan(plan_).fields; }

std::vector<std::string> Dataset::classes() const { return make_stream_plan(plan_).source->info().classes; }

std::uint64_t Dataset::fingerprint() const { return make_stream_plan(plan_).fingerprint(); }

}  // namespace headrace
