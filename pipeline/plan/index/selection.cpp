#include "headrace/pipeline/plan/index/selection.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/plan/planner.h"

namespace headrace {
namespace {

// Whether the stage gives every position as often as any other, in some order.
bool is_order(const Stage& stage) {
  return std::holds_alternative<ShuffleStage>(stage) || std::holds_alternative<ShuffleWindowStage>(stage) ||
         std::holds_alternative<RepeatStage>(stage);
}

// Returns the number of stages before the trailing ones that `is_trailing` accepts. Throws ConfigError if they
// pick other records every epoch.
template <typename IsTrailing>
std::size_t stages_before_order(const std::vector<Stage>& index_stages, const IsTrailing& is_trailing,
                                const char* call, const char* hint) {
  std::size_t end = index_stages.size();
  while (end > 0 && is_trailing(index_stages[end - 1])) --end;
  for (std::size_t i = 0; i < end; ++i) {
    if (!is_shuffled(index_stages[i])) continue;
    throw ConfigError(fmt::format("{} behind {}, then {}: what it sees changes from epoch to epoch", call,
                                  describe(index_stages[i]), describe(index_stages[end - 1])),
                      hint);
  }
  return end;
}

}  // namespace

std::size_t stages_before_filter(const std::vector<Stage>& index_stages) {
  return stages_before_order(index_stages, is_order, "filter()",
                             "put filter() first, before shuffling, mixing and taking parts");
}

std::size_t stages_before_buckets(const std::vector<Stage>& index_stages) {
  const auto keeps_records = [](const Stage& stage) {
    return is_order(stage) || std::holds_alternative<EnumerateStage>(stage);
  };
  return stages_before_order(index_stages, keeps_records, "bucket_by_length()",
                             "choose and combine records first, then shuffle them");
}

std::string Selection::describe() const {
  std::string text = headrace::describe(filter_);
  if (!filter_.processed) return text;
  std::string stages;
  for (const Stage& stage : stages_of(before_)) {
    if (!std::holds_alternative<DecodeStage>(stage) && !std::holds_alternative<MapStage>(stage)) continue;
    stages += (stages.empty() ? "" : " | ") + headrace::describe(stage);
  }
  return fmt::format("{} of what {} leaves", text, stages.empty() ? "the source" : stages);
}

const FilterScan& Selection::result() const {
  return result_.get([this] { return scan(); });
}

FilterScan Selection::scan() const {
  const StreamPlan plan = make_stream_plan(before_);
  std::vector<Stage> stages = plan.index_stages;
  stages.resize(stages_before_filter(stages));
  const std::vector<SampleStage> none;
  return run_filter(plan, stages, filter_.processed ? plan.sample_stages : none, filter_);
}

}  // namespace headrace
