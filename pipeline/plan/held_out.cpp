#include "headrace/pipeline/held_out.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include "headrace/devices/base/error.h"
#include "headrace/pipeline/plan/planner.h"

namespace headrace {
namespace {

bool ends_record_order(const StagePtr& stage) {
  const StageTraits traits = stage->traits();
  return traits.orders || traits.batches;
}

Dataset with_stage(const Dataset& data, const StagePtr& stage) {
  return Dataset(add_stage(data.plan(), stage->after(data.plan())));
}

// Returns the number of records that train.
std::uint64_t trained(std::uint64_t records, double share) {
  const auto count = static_cast<std::uint64_t>(std::floor(static_cast<double>(records) * (1 - share)));
  if (count > 0 && count < records) return count;
  throw ConfigError(fmt::format("a validation split of {} of {} records leaves {} to {}", share, records, "none",
                                count == 0 ? "train on" : "validate with"),
                    "choose another share");
}

}  // namespace

HeldOut hold_out_last(const Dataset& data, double share) {
  if (!(share > 0 && share < 1)) {
    throw ConfigError(fmt::format("a validation split of {} is no part of the data", share),
                      "give a share between 0 and 1");
  }
  const std::vector<StagePtr> stages = stages_of(data.plan());
  const auto split = std::ranges::find_if(stages, ends_record_order);
  PlanPtr plan = data.plan();
  for (auto stage = split; stage != stages.end(); ++stage) plan = plan->before;
  const StreamPlan before = make_stream_plan(plan);
  if (is_shuffled(before.index_stages)) {
    throw ConfigError("a validation split of records that are mixed or shuffled before they are combined",
                      "give the validation a data set of its own");
  }
  if (before.batch) {
    throw ConfigError("a validation split of batches that are combined",
                      "combine records and batch the result, or give the validation a data set of its own");
  }
  const Dataset records(plan);
  const std::uint64_t count = trained(records.size(), share);
  HeldOut result{.train = records.take(count), .validation = records.skip(count)};
  for (const StagePtr& stage : std::span(split, stages.end())) {
    result.train = with_stage(result.train, stage);
    const bool orders_training = stage->traits().by_number;  // says only which records come when
    if (!orders_training) result.validation = with_stage(result.validation, stage);
  }
  return result;
}

}  // namespace headrace
