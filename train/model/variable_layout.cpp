#include "headrace/train/model/variable_layout.h"

#include "headrace/devices/base/error.h"

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

}  // namespace headrace
