// Which variables an optimizer updates by which rule. All of it is data.
#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/devices/base/shape.h"
#include "headrace/devices/kernels.h"
#include "headrace/train/schedule.h"
#include "headrace/train/update_rules.h"

namespace headrace {

// The options' `group` is the model's to set.
using UpdateRule = std::variant<AdamOptions, SgdOptions, MuonOptions, OwnRule>;

// What a group of parameters is chosen by.
struct TrainedVariable {
  std::string name;  // "conv_1/weights"
  std::string kind;  // of its layer: "conv"
  Shape shape;
};

// Chooses variables: named(), of_kind() and of_rank(), and what &&, || and ! make of them.
class VariableRule {
 public:
  enum class Test { kName, kKind, kRank, kAll, kAny, kNot };

  // In a pattern * stands for any characters, none included; everything else for itself.
  static VariableRule named(std::string pattern);
  static VariableRule of_kind(std::string pattern);
  static VariableRule of_rank(int rank);  // the number of axes: biases have 1
  // Of none, all_of() takes everything and any_of() nothing.
  static VariableRule all_of(std::vector<VariableRule> rules);
  static VariableRule any_of(std::vector<VariableRule> rules);

  friend VariableRule operator&&(VariableRule a, VariableRule b) { return all_of({std::move(a), std::move(b)}); }
  friend VariableRule operator||(VariableRule a, VariableRule b) { return any_of({std::move(a), std::move(b)}); }
  friend VariableRule operator!(VariableRule rule);

  bool takes(const TrainedVariable& variable) const;
  // "kind 'conv' and not rank 1"
  std::string to_string() const;

  Test test() const noexcept { return test_; }
  const std::string& pattern() const noexcept { return pattern_; }  // of kName and kKind
  int rank() const noexcept { return rank_; }
  const std::vector<VariableRule>& rules() const noexcept { return rules_; }  // of kAll, kAny, kNot
  bool operator==(const VariableRule& other) const noexcept;

 private:
  explicit VariableRule(Test test) : test_(test) {}

  Test test_;
  std::string pattern_;
  int rank_ = 0;
  std::vector<VariableRule> rules_;
};

// Variables that are updated by a rule and at a rate of their own.
struct ParameterGroup {
  VariableRule takes;
  UpdateRule rule;
  Schedule learning_rate = 1e-3F;

  bool operator==(const ParameterGroup&) const = default;
};

// What a group has in a model.
struct GroupMembers {
  std::string rule;                    // VariableRule::to_string(); "all others" for the optimizer's own
  std::vector<std::string> variables;  // in the order of the update
  // Those which it would take, too, but which a group before it has.
  std::vector<std::string> taken_before = {};
};

}  // namespace headrace
