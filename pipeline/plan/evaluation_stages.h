// The part of a plan that applies to other data, to evaluate a model trained with it.
#pragma once

#include <vector>

#include "headrace/pipeline/plan/plan.h"

namespace headrace {

// Returns the stages that Dataset::evaluation_json() writes, in order, without a source. An unbatch() is a
// CombineStage, a padded_batch() has the lengths that were found. Throws ConfigError if there are no such stages.
std::vector<Stage> evaluation_stages(const PlanPtr& plan);

}  // namespace headrace
