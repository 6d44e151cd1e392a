#include "headrace/train/model.h"

#include <algorithm>

#include "headrace/devices/base/error.h"
#include "headrace/devices/base/hash.h"
#include "headrace/train/graph.h"
#include "headrace/train/model/model_state.h"
#include "headrace/train/model/optimizer_memory.h"
#include "headrace/train/model/variable_layout.h"
#include "headrace/train/strategy.h"

namespace headrace {
Model::Model(std::unique_ptr<ModelState> state) : state_(std::move(state)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

const Graph& Model::graph() const noexcept { return *state_->graph; }
Strategy& Model::strategy() const noexcept { return *state_->strategy; }
std::int64_t Model::parameter_count() const noexcept { return state_->layout.parameter_count(); }
std::uint64_t Model::global_step() const noexcept { return state_->step; }

std::vector<std::string> Model::variable_names() const {
  std::vector<std::string> names;
  for (const Variable& variable : state_->layout.variables()) names.push_back(variable.name);
  return names;
}

Shape Model::variable_shape(const std::string& name) const { return state_->layout.find(name).spec.shape; }

std::vector<std::string> Model::optimizer_variable_names() const {
  return headrace::optimizer_variable_names(*state_);
}

std::vector<float> Model::read_variable(const std::string& name, int replica) const {
  if (auto values = read_optimizer_variable(*state_, name, replica)) return *std::move(values);
  return state_->variables.read(state_->layout.find(name), replica);
}

void Model::write_variable(const std::string& name, std::span<const float> values) {
  state_->written = xxh3(std::as_bytes(values), xxh3(name, state_->written));
  if (write_optimizer_variable(*state_, name, values)) return;
  state_->variables.write(state_->layout.find(name), values);
  write_second_weights(*state_, name, values);
}

namespace {

// Returns the names of trained variables and running statistics that fit the pattern.
std::vector<std::string> fitting_names(const VariableLayout& layout, const std::string& pattern) {
  const VariableRule rule = VariableRule::named(pattern);
  std::vector<std::string> names;
  for (const Variable& variable : layout.variables()) {
    const bool changes = variable.spec.role != VariableRole::kFrozen;
    if (changes && rule.takes({.name = variable.name, .kind = {}, .shape = {}})) names.push_back(variable.name);
  }
  if (names.empty()) {
    throw ConfigError("no variable that training changes is called '" + pattern + "'",
                      "names are those of variable_names(); * stands for any characters");
  }
  return names;
}

}  // namespace

std::vector<std::string> Model::freeze(const std::string& pattern) {
  std::vector<std::string> names = fitting_names(state_->layout, pattern);
  state_->frozen.insert(names.begin(), names.end());
  return names;
}

std::vector<std::string> Model::unfreeze(const std::string& pattern) {
  std::vector<std::string> names = fitting_names(state_->layout, pattern);
  for (const std::string& name : names) state_->frozen.erase(name);
  return names;
}

std::vector<std::string> Model::frozen_variables() const { return {state_->frozen.begin(), state_->frozen.end()}; }

std::vector<std::string> Model::copy_variables(const Model& from, const std::string& pattern) {
  const VariableRule rule = VariableRule::named(pattern);
  const std::vector<std::string> others = from.variable_names();
  std::vector<std::string> copied;
  for (const Variable& variable : state_->layout.variables()) {
    const bool both = std::ranges::find(others, variable.name) != others.end();
    if (both && rule.takes({.name = variable.name, .kind = {}, .shape = {}})) copied.push_back(variable.name);
  }
  if (copied.empty()) {
    throw ConfigError("the models have no variable in common that is called '" + pattern + "'",
                      "layers of both must have the same names");
  }
  for (const std::string& name : copied) {
    if (variable_shape(name) == from.variable_shape(name)) continue;
    throw ConfigError("variable '" + name + "' has shape " + variable_shape(name).to_string() + " here and " +
                          from.variable_shape(name).to_string() + " in the model it is copied from",
                      "give the new layer a name of its own, or a pattern that leaves it out");
  }
  for (const std::string& name : copied) write_variable(name, from.read_variable(name));
  return copied;
}

TensorView Model::variable(const std::string& name, int replica) const {
  return state_->variables.view(state_->layout.find(name), replica);
}

std::string Model::weights_sha256() const { return state_->variables.sha256(); }

void Model::check_mirrored() const {
  state_->variables.check();
  check_second_weights(*state_);
}

std::vector<GroupMembers> Model::parameter_groups() const {
  return group_members(*state_->graph, state_->layout, state_->require_compiled("parameter_groups()").optimizer);
}

}  // namespace headrace
