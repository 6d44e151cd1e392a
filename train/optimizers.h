// How gradients change parameters: schedules of rates, groups of parameters, optimizers. Values that describe;
// what an optimizer remembers belongs to a compiled model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/base/shape.h"
#include "headrace/devices/kernels.h"
#include "headrace/train/update_rules.h"

namespace HEADRACE_API headrace {

// The learning rate as a function of the optimizer's step, evaluated on the host once a step.
//
// Steps are optimizer steps, from 0: one for each update, however many batches it accumulates and whatever an
// epoch is. Every schedule is data: it can be compared, and written down with its optimizer.

class OptionVisitor;

// Linear from 0 to `peak` over the warm-up, then down to `floor` at `total_steps`, and there it stays.
struct DecayOptions {
  float peak = 1e-3F;
  float floor = 0;
  std::uint64_t warmup_steps = 0;
  std::uint64_t total_steps = 1;

  bool operator==(const DecayOptions&) const = default;
};

// rates[0] up to the step boundaries[0], rates[1] from there on, and so forth: one rate more than boundaries.
struct PiecewiseOptions {
  std::vector<float> rates = {};
  std::vector<std::uint64_t> boundaries = {};  // ascending

  bool operator==(const PiecewiseOptions&) const = default;
};

// initial * factor^(step / every_steps); in a staircase the exponent is rounded down.
struct ExponentialOptions {
  float initial = 1e-3F;
  float factor = 0.96F;  // in (0, 1]
  std::uint64_t every_steps = 1;
  bool staircase = false;

  bool operator==(const ExponentialOptions&) const = default;
};

// L. Smith's, as PyTorch has it: from peak / initial_divisor up to `peak` at step total_steps * warmup_share - 1,
// from there down to peak / initial_divisor / final_divisor at the last step, and there it stays. Along half a
// cosine each, or along lines.
struct OneCycleOptions {
  float peak = 1e-2F;
  std::uint64_t total_steps = 2;
  float warmup_share = 0.3F;
  float initial_divisor = 25, final_divisor = 1e4F;
  bool linear = false;

  bool operator==(const OneCycleOptions&) const = default;
};

// Show the options to a visitor.
void show(DecayOptions& options, OptionVisitor& visit);
void show(PiecewiseOptions& options, OptionVisitor& visit);
void show(ExponentialOptions& options, OptionVisitor& visit);
void show(OneCycleOptions& options, OptionVisitor& visit);

class Schedule;

// What a schedule can be.
namespace schedules {

struct Constant {
  float rate = 0;

  bool operator==(const Constant&) const = default;
};
struct Decay {
  DecayOptions options = {};
  bool cosine = false;

  bool operator==(const Decay&) const = default;
};
struct WarmUp {
  std::uint64_t steps = 0;
  std::vector<Schedule> then = {};  // one
};
struct Chained {
  std::vector<Schedule> parts = {};
  std::vector<std::uint64_t> boundaries = {};
};
using Form = std::variant<Constant, Decay, PiecewiseOptions, ExponentialOptions, OneCycleOptions, WarmUp, Chained>;

}  // namespace schedules

// A value. The factories throw ConfigError for what cannot be.
class Schedule {
 public:
  Schedule(float constant);  // NOLINT: implicit by design

  static Schedule linear_decay(const DecayOptions& options);
  static Schedule cosine_decay(const DecayOptions& options);
  static Schedule piecewise(PiecewiseOptions options);
  static Schedule exponential_decay(const ExponentialOptions& options);
  static Schedule one_cycle(const OneCycleOptions& options);
  // Linear from 0 to the first rate of `then`, which step `steps` - 1 has reached; then `then`, counted from its
  // own 0.
  static Schedule warm_up(std::uint64_t steps, Schedule then);
  // parts[0] up to the step boundaries[0], parts[1] from there on, and so forth, each counted from its own 0.
  static Schedule chained(std::vector<Schedule> parts, std::vector<std::uint64_t> boundaries);

  // Steps count from 0.
  float at(std::uint64_t step) const noexcept;
  // The first step from which on the rate is 0 for good; nothing where there is none.
  std::optional<std::uint64_t> zero_from() const;

  const schedules::Form& form() const noexcept { return form_; }
  bool operator==(const Schedule& other) const noexcept;

 private:
  explicit Schedule(schedules::Form form);

  schedules::Form form_;
};

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

// What is done to the step's gradients, summed over all replicas, before the update. The norm is that of all
// gradients together, as one vector; variables whose rate has ended for good count no more. First elements are
// limited, then the norm. The update then waits for all gradients.
struct GradientClip {
  float max_norm = 0;   // 0: any
  float max_value = 0;  // of an element's magnitude; 0: any

  bool on() const noexcept { return max_norm != 0 || max_value != 0; }
  bool operator==(const GradientClip&) const = default;
};

// A second set of weights: average = d average + (1 - d) weights after each update, d being `decay` or, as long as
// that is less, t / (t + warmup) after t updates before it. Its first value is the weights. With `warmup` 1 and a
// decay of 1 it is the mean of all weights so far. What is not trained (running statistics) has no average.
struct WeightAverage {
  float decay = 0.999F;
  std::uint64_t warmup = 0;

  // In the update after `step` others.
  float decay_at(std::uint64_t step) const noexcept;
  bool operator==(const WeightAverage&) const = default;
};

// M. Zhang's: after each `every` updates slow = slow + share (weights - slow), and the weights become that.
struct Lookahead {
  std::uint64_t every = 5;
  float share = 0.5F;

  // After the update that follows `step` others: 0 where nothing is done.
  float share_at(std::uint64_t step) const noexcept { return (step + 1) % every == 0 ? share : 0; }
  bool operator==(const Lookahead&) const = default;
};

struct Optimizer {
  UpdateRule rule = AdamOptions{};  // of the variables that no group takes
  Schedule learning_rate = 1e-3F;
  // Asked in order: the first whose rule takes a variable has it (Model::parameter_groups() tells). One that gets
  // none is a ConfigError of compile(). The maximum is kMaxParameterGroups - 1.
  std::vector<ParameterGroup> groups = {};
  GradientClip clip = {};
  std::optional<Lookahead> lookahead = {};
  std::optional<WeightAverage> average = {};  // of the weights after lookahead

  // Of the variables that no group takes: "adam", "sgd", "muon", or that of a rule of your own.
  std::string name() const;
  // The number of arenas, each the size of the parameters, in which its rules keep moments from step to step.
  int moments() const;
  bool operator==(const Optimizer&) const = default;
};

// Keras's defaults: 0.9, 0.999, 1e-7. With .weight_decay it is AdamW (decoupled).
Optimizer adam(Schedule learning_rate = 1e-3F, AdamOptions options = {});
// PyTorch's decay, 1e-2.
Optimizer adamw(Schedule learning_rate = 1e-3F, AdamOptions options = {.weight_decay = 1e-2F});
Optimizer sgd(Schedule learning_rate = 1e-2F, SgdOptions options = {});
// For weight matrices and convolutions; biases need a group of another rule.
Optimizer muon(Schedule learning_rate = 0.02F, MuonOptions options = {});

// Show the options to a visitor, all but the `group`.
void show(AdamOptions& options, OptionVisitor& visit);
void show(SgdOptions& options, OptionVisitor& visit);
void show(MuonOptions& options, OptionVisitor& visit);
void show(GradientClip& options, OptionVisitor& visit);
void show(Lookahead& options, OptionVisitor& visit);
void show(WeightAverage& options, OptionVisitor& visit);

// All of an optimizer as a JSON object, and back: the result is equal. What is left out has its default;
// ConfigError with the place for a key or a value that cannot be, and for a rule that is neither this library's
// nor made by `own`.
std::string to_json(const Optimizer& optimizer);
Optimizer optimizer_from_json(std::string_view json, const UpdateMakers& own = {});

}  // namespace headrace
