#include "headrace/train/model/parameter_grouping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

struct PlacedVariable {
  const Variable* variable;
  TrainedVariable described;
};

std::vector<PlacedVariable> in_arena_order(const Graph& graph, const VariableLayout& layout) {
  std::vector<PlacedVariable> placed;
  for (int id = 0; id < graph.size(); ++id) {
    const auto [first, end] = layout.of_layer(id);
    for (std::size_t i = first; i < end && graph.owner(id) == id; ++i) {
      const Variable& variable = layout.variables()[i];
      if (variable.spec.role != VariableRole::kTrained) continue;
      placed.push_back({&variable, {variable.name, graph.layer(id).kind(), variable.spec.shape}});
    }
  }
  std::ranges::sort(placed, {}, [](const PlacedVariable& each) { return each.variable->offset; });
  return placed;
}

// Returns 0 if no group takes it.
int group_of(const Optimizer& optimizer, const TrainedVariable& variable) {
  for (std::size_t i = 0; i < optimizer.groups.size(); ++i) {
    if (optimizer.groups[i].takes.takes(variable)) return static_cast<int>(i) + 1;
  }
  return 0;
}

[[noreturn]] void refuse_empty(std::size_t group, const std::vector<GroupMembers>& groups,
                               const std::vector<PlacedVariable>& variables) {
  const GroupMembers& empty = groups[group];
  const std::string who = fmt::format("parameter group {} ({}) takes no variable", group, empty.rule);
  if (empty.taken_before.empty()) {
    std::vector<std::string> known;
    for (const auto& [variable, described] : variables) {
      known.push_back(
          fmt::format("{} (kind '{}', rank {})", described.name, described.kind, described.shape.rank()));
    }
    throw ConfigError(who, fmt::format("the trained variables are {}", fmt::join(known, ", ")));
  }
  throw ConfigError(
      fmt::format("{}: groups before it have {}", who, fmt::join(empty.taken_before, ", ")),
      "groups are asked in order, the first that takes a variable has it: put the narrower rule first");
}

}  // namespace

std::vector<GroupMembers> group_members(const Graph& graph, const VariableLayout& layout,
                                        const Optimizer& optimizer) {
  std::vector<GroupMembers> groups{{.rule = "all others", .variables = {}}};
  for (const ParameterGroup& group : optimizer.groups) {
    groups.push_back({.rule = group.takes.to_string(), .variables = {}});
  }
  for (const auto& [variable, described] : in_arena_order(graph, layout)) {
    const auto has_it = static_cast<std::size_t>(group_of(optimizer, described));
    groups[has_it].variables.push_back(described.name);
    if (has_it == 0) continue;
    for (std::size_t later = has_it; later < optimizer.groups.size(); ++later) {
      if (!optimizer.groups[later].takes.takes(described)) continue;
      groups[later + 1].taken_before.push_back(described.name);
    }
  }
  return groups;
}

std::vector<GroupedVariable> grouped_variables(const Graph& graph, const VariableLayout& layout,
                                               const Optimizer& optimizer) {
  const std::vector<PlacedVariable> variables = in_arena_order(graph, layout);
  const std::vector<GroupMembers> groups = group_members(graph, layout, optimizer);
  for (std::size_t group = 1; group < groups.size(); ++group) {
    if (groups[group].variables.empty()) refuse_empty(group, groups, variables);
  }
  std::vector<GroupedVariable> grouped;
  for (const auto& [variable, described] : variables)
    grouped.push_back({variable, described, group_of(optimizer, described)});
  return grouped;
}

}  // namespace headrace
