#include "headrace/train/model/variable_layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/rng.h"

namespace headrace {
namespace {

std::int64_t take(std::int64_t& arena, std::int64_t elements) {
  const std::int64_t offset = arena;
  arena += (elements + VariableLayout::kAlignment - 1) / VariableLayout::kAlignment * VariableLayout::kAlignment;
  return offset;
}

}  // namespace

VariableLayout::VariableLayout(const Graph& graph) : filled_(static_cast<std::size_t>(graph.size())) {
  for (int id = 0; id < graph.size(); ++id) {
    if (const int owner = graph.owner(id); owner != id) {
      ranges_.push_back(ranges_[static_cast<std::size_t>(owner)]);
      continue;
    }
    const std::size_t first = variables_.size();
    for (VariableSpec& spec : graph.layer(id).variables()) {
      std::string name = graph.name(id) + "/" + spec.name;
      variables_.push_back({.name = std::move(name), .spec = std::move(spec)});
    }
    ranges_.emplace_back(first, variables_.size());
  }
  for (int id = graph.size() - 1; id >= 0; --id) {
    const auto [first, end] = of_layer(id);
    for (std::size_t i = first; i < end && graph.owner(id) == id; ++i) {
      const VariableRole role = variables_[i].spec.role;
      if (role == VariableRole::kFrozen) continue;
      std::int64_t& arena = role == VariableRole::kTrained ? trained_elements_ : state_elements_;
      variables_[i].offset = take(arena, variables_[i].spec.shape.elements());
    }
    filled_[static_cast<std::size_t>(id)] = trained_elements_;
  }
  averaged_elements_ = state_elements_;
  for (Variable& variable : variables_) {
    if (variable.spec.role != VariableRole::kFrozen) continue;
    variable.offset = take(state_elements_, variable.spec.shape.elements());
  }
}

const Variable& VariableLayout::find(const std::string& name) const {
  std::string names;
  for (const Variable& variable : variables_) {
    if (variable.name == name) return variable;
    names += (names.empty() ? "" : ", ") + variable.name;
  }
  throw ConfigError("the model has no variable '" + name + "'", "it has " + names);
}

void VariableLayout::freeze(const std::set<std::string>& names) {
  for (Variable& variable : variables_) variable.frozen = names.contains(variable.name);
}

bool VariableLayout::has_frozen_state(int id) const {
  const auto [first, end] = of_layer(id);
  for (std::size_t i = first; i < end; ++i) {
    if (variables_[i].frozen && variables_[i].spec.role == VariableRole::kState) return true;
  }
  return false;
}

std::int64_t VariableLayout::parameter_count() const noexcept {
  std::int64_t count = 0;
  for (const Variable& variable : variables_) {
    if (variable.spec.role == VariableRole::kTrained) count += variable.spec.shape.elements();
  }
  return count;
}

namespace {

float uniform_limit(const VariableSpec& spec) {
  if (spec.fill == Fill::kUniform) return spec.constant;
  const auto fan_in = static_cast<float>(spec.fan_in);
  if (spec.fill == Fill::kFanInUniform || spec.fill == Fill::kDirac) return 1.0F / std::sqrt(fan_in);
  return std::sqrt(6.0F /
                   (spec.fill == Fill::kGlorotUniform ? fan_in + static_cast<float>(spec.fan_out) : fan_in));
}

// Sets filter c of shape (O, KH, KW, C) to 1 at its centre for channel c, 0 elsewhere.
void pass_channels_on(const Shape& shape, std::vector<float>& values) {
  const std::int64_t filters = std::min(shape[0], shape.back());
  const std::int64_t filter = shape.elements() / shape[0];
  std::fill_n(values.begin(), filters * filter, 0.0F);
  const std::int64_t centre = shape.rank() == 4 ? (shape[1] / 2 * shape[2] + shape[2] / 2) * shape[3] : 0;
  for (std::int64_t c = 0; c < filters; ++c) values[static_cast<std::size_t>(c * filter + centre + c)] = 1.0F;
}

void divide_by_deviation(std::vector<float>& values) {
  if (values.size() < 2) return;
  double sum = 0, squares = 0;
  for (const float value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (const float value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  for (float& value : values) value = static_cast<float>(value / deviation);
}

}  // namespace

std::vector<float> initial_values(const VariableSpec& spec, std::uint64_t seed, std::uint64_t number) {
  std::vector<float> values(static_cast<std::size_t>(spec.shape.elements()),
                            spec.fill == Fill::kConstant ? spec.constant : 0.0F);
  if (spec.fill == Fill::kZeros || spec.fill == Fill::kConstant) return values;
  const float limit = uniform_limit(spec);
  Philox random({.seed = seed, .record = number});
  for (float& value : values) value = (2.0F * random.uniform() - 1.0F) * limit;
  if (spec.fill == Fill::kDirac) pass_channels_on(spec.shape, values);
  if (spec.fill == Fill::kUnitDeviation) divide_by_deviation(values);
  return values;
}

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
