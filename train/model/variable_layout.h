// The variables of a net: their places in the arenas, their initial values, the optimizer's groups that they
// belong to.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "headrace/train/graph.h"
#include "headrace/train/layers.h"
#include "headrace/train/optimizers.h"

namespace headrace {

// Lists the variables of a net and places them in the arenas.

struct Variable {
  std::string name;  // "conv_1/weights"
  VariableSpec spec;
  std::int64_t offset = 0;  // elements, in the arena of its role
  bool frozen = false;      // not updated; see Model::freeze()

  bool learns() const noexcept { return spec.role == VariableRole::kTrained && !frozen; }
};

// Trained variables lie in one arena, the last layer's first: the order in which the backward pass finishes their
// gradients. A variable that several calls of a layer share belongs to the first call, whose turn comes last.
// State lies in another arena, followed by frozen variables. Each variable begins on a cache line; the gaps stay
// 0.
class VariableLayout {
 public:
  static constexpr std::int64_t kAlignment = 16;  // elements; arenas are multiples of it

  explicit VariableLayout(const Graph& graph);

  const std::vector<Variable>& variables() const noexcept { return variables_; }  // in layer order
  // Returns one layer's variables: [first, second) in variables().
  std::pair<std::size_t, std::size_t> of_layer(int id) const { return ranges_.at(static_cast<std::size_t>(id)); }
  const Variable& find(const std::string& name) const;  // throws ConfigError listing the names

  // Marks exactly these variables as frozen.
  void freeze(const std::set<std::string>& names);
  // Returns whether the layer has frozen state: it then works as in an evaluation.
  bool has_frozen_state(int id) const;

  std::int64_t trained_elements() const noexcept { return trained_elements_; }
  std::int64_t state_elements() const noexcept { return state_elements_; }  // frozen ones included
  // Returns the elements of the state arena that replicas average: all before those of VariableRole::kFrozen.
  std::int64_t averaged_elements() const noexcept { return averaged_elements_; }
  std::int64_t parameter_count() const noexcept;  // without the gaps
  // Returns how many elements of the gradient arena are final once the backward pass has done this layer.
  std::int64_t filled_after(int id) const { return filled_.at(static_cast<std::size_t>(id)); }

 private:
  std::vector<Variable> variables_;
  std::vector<std::pair<std::size_t, std::size_t>> ranges_;
  std::vector<std::int64_t> filled_;
  std::int64_t trained_elements_ = 0;
  std::int64_t state_elements_ = 0;
  std::int64_t averaged_elements_ = 0;
};

// Initial values of variables.

// Returns the values as a pure function of the arguments; `number` is the variable's position in the model.
std::vector<float> initial_values(const VariableSpec& spec, std::uint64_t seed, std::uint64_t number);

// Assigns variables to an optimizer's groups.

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
