// What of a plan is done to other data than its own, to evaluate what was trained by it.
#pragma once

#include <vector>

#include "headrace/pipeline/plan/plan.h"

namespace headrace {

// The stages that Dataset::evaluation_json() writes, in their order, without a source. An unbatch() is a
// CombineStage, a padded_batch() has the lengths that were found. ConfigError where there are none such.
std::vector<Stage> evaluation_stages(const PlanPtr& plan);

}  // namespace headrace
