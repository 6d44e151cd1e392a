// Which of an optimizer's groups has which variable.
#pragma once

#include <vector>

#include "headrace/train/graph.h"
#include "headrace/train/model/variable_layout.h"
#include "headrace/train/optimizers.h"

namespace headrace {

struct GroupedVariable {
  const Variable* variable;
  TrainedVariable described;
  int group;  // 0: the optimizer's own rule, its groups follow
};

// The trained variables in the order of the arenas. The first group whose rule takes a variable has it.
// ConfigError for a group that gets none, with its rule and what became of the variables.
std::vector<GroupedVariable> grouped_variables(const Graph& graph, const VariableLayout& layout,
                                               const Optimizer& optimizer);

// The optimizer's own rule first. None of the errors.
std::vector<GroupMembers> group_members(const Graph& graph, const VariableLayout& layout,
                                        const Optimizer& optimizer);

}  // namespace headrace
