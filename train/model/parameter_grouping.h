// Assigns variables to an optimizer's groups.
#pragma once

#include <vector>

#include "headrace/train/graph.h"
#include "headrace/train/model/variable_layout.h"
#include "headrace/train/optimizers.h"

namespace headrace {

struct GroupedVariable {
  const Variable* variable;
  TrainedVariable described;
  int group;  // 0: the optimizer's own rule; its groups follow
};

// Returns the trained variables in the order of the arenas, each in the first group whose rule takes it. Throws
// ConfigError for a group that gets none, naming its rule and what became of the variables.
std::vector<GroupedVariable> grouped_variables(const Graph& graph, const VariableLayout& layout,
                                               const Optimizer& optimizer);

// Returns the optimizer's own rule first. Does not check for empty groups.
std::vector<GroupMembers> group_members(const Graph& graph, const VariableLayout& layout,
                                        const Optimizer& optimizer);

}  // namespace headrace
