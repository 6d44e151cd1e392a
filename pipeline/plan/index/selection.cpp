#include "headrace/pipeline/plan/index/selection.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/plan/planner.h"

namespace headrace {
namespace {

bool changes_order(const Stage& stage) {
  return std::holds_alternative<ShuffleStage>(stage) || std::holds_alternative<ShuffleWindowStage>(stage);
}

}  // namespace

std::size_t stages_before_filter(const std::vector<Stage>& index_stages, const std::string& call) {
  std::size_t end = index_stages.size();
  while (end > 0 &&
         (changes_order(index_stages[end - 1]) || std::holds_alternative<RepeatStage>(index_stages[end - 1]))) {
    --end;
  }
  for (std::size_t i = 0; i < end; ++i) {
    if (!is_shuffled(index_stages[i])) continue;
    throw ConfigError(fmt::format("{} behind {}, then {}: what it sees changes from epoch to epoch", call,
                                  describe(index_stages[i]), describe(index_stages[end - 1])),
                      "put filter() first, before shuffling, mixing and taking parts");
  }
  return end;
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
