#include <fmt/format.h>

#include <span>
#include <variant>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/plan/combination.h"
#include "headrace/pipeline/plan/evaluation_stages.h"
#include "headrace/pipeline/plan/json/format.h"
#include "headrace/pipeline/plan/json/named_parts.h"
#include "headrace/pipeline/plan/json/option_writer.h"
#include "headrace/pipeline/plan/json/parse.h"
#include "headrace/pipeline/plan/stages/option_stage.h"
#include "headrace/pipeline/sources/origin.h"

namespace headrace {
namespace plan_json {
namespace {

using Out = nlohmann::ordered_json;

class PlanWriter {
 public:
  explicit PlanWriter(const PlanParts& parts) : parts_(parts) {}

  // {"source": ..., "stages": [...]}; `path` is of the object and ends with a point, or is empty.
  Out dataset(const PlanPtr& plan, const std::string& path) {
    const std::vector<StagePtr> stages = stages_of(plan);
    count_stages(stages.size() + 1);
    const PlanSource& first = source_of(plan);
    Out written;
    if (first.windowed != nullptr) {
      written = dataset(first.windowed->plan, path);
      const std::string at = fmt::format("{}stages[{}]", path, written["stages"].size());
      written["stages"].push_back(named_options(at, "window", first.windowed->options));
    } else if (first.combination != nullptr) {
      written = combined(*first.combination, path);
    } else {
      written = {{"source", source(first, path + "source")}, {"stages", Out::array()}};
    }
    write_stages(stages, path, written["stages"]);
    return written;
  }

  // At the end of the list.
  void write_stages(std::span<const StagePtr> stages, const std::string& path, Out& list) {
    for (const StagePtr& stage : stages)
      list.push_back(stage->to_json(parts_, fmt::format("{}stages[{}]", path, list.size())));
  }

 private:
  void count_stages(std::size_t count) {
    stages_ += count;
    if (stages_ <= kMaxStages) return;
    throw ConfigError(fmt::format("to_json(): the plan has more than {} stages", kMaxStages));
  }

  Out source(const PlanSource& source, const std::string& path) {
    if (source.zipped != nullptr) return parts("zip", source.zipped->parts, source.zipped->options, path);
    const SourcePtr& opened = source.unpadded != nullptr ? source.unpadded : source.source;
    const SourceOrigin* origin = opened->origin().get();
    if (origin == nullptr) return write_named(opened, parts_, path);
    return {{origin->name(), write_options(path + "." + origin->name(),
                                           [&](OptionVisitor& visit) { origin->visit_arguments(visit); })}};
  }

  // A dataset whose source is a combination; an unbatch() is a stage of what it was called on.
  Out combined(const Combination& combination, const std::string& path) {
    if (std::holds_alternative<UnbatchRows>(combination.how)) {
      Out written = dataset(combination.parts.front().plan, path);
      written["stages"].push_back(unbatch_stage()->to_json(parts_, path));
      return written;
    }
    std::vector<PlanPtr> plans;
    for (const CombinedPart& part : combination.parts) plans.push_back(part.plan);
    const std::string at = path + "source";
    Out made;
    if (const auto* block = std::get_if<InterleaveOptions>(&combination.how)) {
      made = parts("interleave", plans, *block, at);
    } else if (const auto* weights = std::get_if<MixOptions>(&combination.how)) {
      made = parts("mix", plans, *weights, at);
    } else {
      made = parts("concatenate", plans, NoOptions{}, at);
    }
    return {{"source", std::move(made)}, {"stages", Out::array()}};
  }

  template <typename Options>
  Out parts(const char* name, const std::vector<PlanPtr>& plans, const Options& options, const std::string& path) {
    Out list = Out::array();
    for (std::size_t i = 0; i < plans.size(); ++i)
      list.push_back(dataset(plans[i], fmt::format("{}.{}.parts[{}].", path, name, i)));
    Out written = named_options(path, name, options);
    written[name]["parts"] = std::move(list);
    return written;
  }

  const PlanParts& parts_;
  std::size_t stages_ = 0;
};

}  // namespace
}  // namespace plan_json

std::string Dataset::evaluation_json() const {
  const EvaluationStages stages(plan_);
  const PlanParts no_parts;
  nlohmann::ordered_json written{{plan_json::kVersionName, plan_json::kVersion},
                                 {"source", {{plan_json::kNamed, "data"}}},
                                 {"stages", nlohmann::ordered_json::array()}};
  plan_json::PlanWriter(no_parts).write_stages(stages.kept(), "", written["stages"]);
  return plan_json::print(written);
}

std::string Dataset::to_json(const PlanParts& parts) const {
  nlohmann::ordered_json written{{plan_json::kVersionName, plan_json::kVersion}};
  written.update(plan_json::PlanWriter(parts).dataset(plan_, ""));
  return plan_json::print(written);
}

}  // namespace headrace
