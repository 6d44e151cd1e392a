#include "headrace/pipeline/plan/stage.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/reader_words.h"

namespace headrace {

nlohmann::ordered_json Stage::to_json(const PlanParts& /*parts*/, const std::string& path) const {
  throw Error(ErrorCode::kInternal, fmt::format("to_json(): {} stands at {}", describe(), path));
}

void Stage::plan_into(PlanBuilder& /*plan*/) const {
  throw Error(ErrorCode::kInternal, "only the planner makes the stage: " + describe());
}

Indexed Stage::index(const StageInput& /*before*/) const {
  throw Error(ErrorCode::kInternal, "not an index stage: " + describe());
}

PlanPtr begin_plan(PlanSource source) {
  return std::make_shared<const PlanNode>(PlanNode{
      .before = nullptr, .stage = nullptr, .source = std::make_shared<const PlanSource>(std::move(source))});
}

PlanPtr add_stage(PlanPtr before, StagePtr stage) {
  return std::make_shared<const PlanNode>(PlanNode{.before = std::move(before), .stage = std::move(stage)});
}

const PlanSource& source_of(const PlanPtr& plan) {
  const PlanNode* node = plan.get();
  while (node->before != nullptr) node = node->before.get();
  return *node->source;
}

std::vector<StagePtr> stages_of(const PlanPtr& plan) {
  std::vector<StagePtr> stages;
  for (const PlanNode* node = plan.get(); node->before != nullptr; node = node->before.get())
    stages.push_back(node->stage);
  std::ranges::reverse(stages);
  return stages;
}

PlanPtr with_source(const PlanPtr& plan, PlanSource source) {
  if (plan->before == nullptr) return begin_plan(std::move(source));
  return add_stage(with_source(plan->before, std::move(source)), plan->stage);
}

std::string describe(const Source& source) {
  const SourceInfo& info = source.info();
  if (info.streamed) return fmt::format("source({}, a stream)", info.name);
  return fmt::format("source({}, {} records{})", info.name, info.records, info.resident ? ", in memory" : "");
}

void refuse_stream(const Source& source, const std::string& what) {
  const SourceInfo& info = source.info();
  if (!info.streamed) return;
  if (source.sharded() != nullptr) {
    throw ConfigError(
        fmt::format("{} of {}: shards that are not indexed have no record numbers and no known length", what,
                    info.name),
        joined({advice("index them: leave out {}", named("SourceOptions::indexed", "false")),
                advice("shuffle shards and windows of records: {}", named("Dataset::shuffle_shards()"))}));
  }
  throw ConfigError(
      fmt::format("{} of {}: a stream has no record numbers and no known length", what, info.name),
      joined({"write it to a file first", advice("keep all records in memory: {}", named("pulled()")),
              advice("shuffle within a window: {}", named("Dataset::shuffle_window()"))}));
}

bool is_shuffled(const std::vector<StagePtr>& stages) {
  return std::ranges::any_of(stages, [](const StagePtr& stage) { return stage->traits().shuffles; });
}

bool renumbers(const std::vector<StagePtr>& stages) {
  return std::ranges::any_of(stages, [](const StagePtr& stage) {
    const StageTraits traits = stage->traits();
    return traits.shuffles || traits.repeats;
  });
}

std::size_t stages_before_order(const std::vector<StagePtr>& index_stages, bool numbers, const char* call,
                                const char* hint) {
  const auto moves_after = [&](const StagePtr& stage) {
    const StageTraits traits = stage->traits();
    return traits.orders || (numbers && traits.numbers);
  };
  std::size_t end = index_stages.size();
  while (end > 0 && moves_after(index_stages[end - 1])) --end;
  for (std::size_t i = 0; i < end; ++i) {
    if (!index_stages[i]->traits().shuffles) continue;
    throw ConfigError(fmt::format("{} after {}, then {}: what it sees changes from epoch to epoch", call,
                                  index_stages[i]->describe(), index_stages[end - 1]->describe()),
                      hint);
  }
  return end;
}

}  // namespace headrace
