#include "headrace/pipeline/plan/index/selection.h"

#include <fmt/format.h>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/plan/planner.h"

namespace headrace {
namespace {

bool changes_order(const Stage& stage) {
  return std::holds_alternative<ShuffleStage>(stage) || std::holds_alternative<ShuffleWindowStage>(stage);
}

// Which records come at which position depends on seed or epoch.
bool is_random(const Stage& stage) {
  if (changes_order(stage)) return true;
  const auto* combine = std::get_if<CombineStage>(&stage);
  if (combine == nullptr) return false;
  if (std::holds_alternative<MixOptions>(combine->combination->how)) return true;
  for (const CombinedPart& part : combine->combination->parts) {
    for (const Stage& inner : part.stages) {
      if (is_random(inner)) return true;
    }
  }
  return false;
}

}  // namespace

std::size_t stages_before_filter(const std::vector<Stage>& index_stages) {
  std::size_t end = index_stages.size();
  while (end > 0 &&
         (changes_order(index_stages[end - 1]) || std::holds_alternative<RepeatStage>(index_stages[end - 1]))) {
    --end;
  }
  for (std::size_t i = 0; i < end; ++i) {
    if (!is_random(index_stages[i])) continue;
    throw ConfigError(fmt::format("filter() behind {}, then {}: what it sees changes from epoch to epoch",
                                  describe(index_stages[i]), describe(index_stages[end - 1])),
                      "put .filter() first, before shuffling, mixing and taking parts");
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
  const std::lock_guard lock(mutex_);
  if (!result_) {
    const StreamPlan plan = make_stream_plan(before_);
    std::vector<Stage> stages = plan.index_stages;
    stages.resize(stages_before_filter(stages));
    const std::vector<SampleStage> none;
    result_ = run_filter(plan.source, stages, filter_.processed ? plan.sample_stages : none, filter_);
  }
  return *result_;
}

}  // namespace headrace
