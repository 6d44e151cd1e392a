// Optimizers: learning rate schedules, groups of parameters and update rules. These are plain values; an
// optimizer's state belongs to a compiled model.
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

// The learning rate as a function of the optimizer's step, evaluated on the host once per step.
//
// Steps are optimizer steps, counted from 0: one per update, whatever the number of accumulated batches or the
// length of an epoch. Every schedule is data: it can be compared, and saved with its optimizer.

class OptionVisitor;

// Rises linearly over the warm-up, (step + 1) / warmup_steps of `peak`, so that no step has a rate of 0; then
// falls to `floor` at `total_steps`, and stays there.
struct DecayOptions {
  float peak = 1e-3F;
  float floor = 0;
  std::uint64_t warmup_steps = 0;
  std::uint64_t total_steps = 1;

  bool operator==(const DecayOptions&) const = default;
};

// rates[0] before step boundaries[0], rates[1] from there on, and so on: one more rate than boundaries.
struct PiecewiseOptions {
  std::vector<float> rates = {};
  std::vector<std::uint64_t> boundaries = {};  // ascending

  bool operator==(const PiecewiseOptions&) const = default;
};

// initial * factor^(step / every_steps); with `staircase` the exponent is rounded down.
struct ExponentialOptions {
  float initial = 1e-3F;
  float factor = 0.96F;  // in (0, 1]
  std::uint64_t every_steps = 1;
  bool staircase = false;

  bool operator==(const ExponentialOptions&) const = default;
};

// L. Smith's one-cycle schedule, as in PyTorch: rises from peak / initial_divisor to `peak` at step total_steps *
// warmup_share - 1, falls to peak / initial_divisor / final_divisor at the last step, and stays there. Each part
// is half a cosine, or a line if `linear`.
struct OneCycleOptions {
  float peak = 1e-2F;
  std::uint64_t total_steps = 2;
  float warmup_share = 0.3F;
  float initial_divisor = 25, final_divisor = 1e4F;
  bool linear = false;

  bool operator==(const OneCycleOptions&) const = default;
};

// Shows the options to a visitor.
void show(DecayOptions& options, OptionVisitor& visit);
void show(PiecewiseOptions& options, OptionVisitor& visit);
void show(ExponentialOptions& options, OptionVisitor& visit);
void show(OneCycleOptions& options, OptionVisitor& visit);

class Schedule;

// The forms of a schedule.
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

// A value. The factories throw ConfigError for invalid options.
class Schedule {
 public:
  Schedule(float constant);  // NOLINT: implicit by design; at least 0

  static Schedule linear_decay(const DecayOptions& options);
  static Schedule cosine_decay(const DecayOptions& options);
  static Schedule piecewise(PiecewiseOptions options);
  static Schedule exponential_decay(const ExponentialOptions& options);
  static Schedule one_cycle(const OneCycleOptions& options);
  // Rises linearly, (step + 1) / steps of the first rate of `then`: from a share of 1 / steps at step 0, as
  // PyTorch's LinearLR with that start_factor, to all of it at step `steps` - 1; then follows `then`, counted from
  // its own 0.
  static Schedule warm_up(std::uint64_t steps, Schedule then);
  // Follows parts[0] before step boundaries[0], parts[1] from there on, and so on, each counted from its own 0.
  static Schedule chained(std::vector<Schedule> parts, std::vector<std::uint64_t> boundaries);

  // Returns the rate of the zero-based step.
  float at(std::uint64_t step) const noexcept;
  // Returns the first step from which the rate stays 0, or std::nullopt if there is none.
  std::optional<std::uint64_t> zero_from() const;

  const schedules::Form& form() const noexcept { return form_; }
  bool operator==(const Schedule& other) const noexcept;

 private:
  explicit Schedule(schedules::Form form);

  schedules::Form form_;
};

// The model sets the options' `group`.
using UpdateRule = std::variant<AdamOptions, SgdOptions, MuonOptions, CustomRule>;

// The properties by which a group of parameters chooses its variables.
struct TrainedVariable {
  std::string name;  // "conv_1/weights"
  std::string kind;  // of its layer: "conv"
  Shape shape;
};

// Chooses variables: named(), of_kind() and of_rank(), combined by &&, || and !.
class VariableRule {
 public:
  enum class Test { kName, kKind, kRank, kAll, kAny, kNot };

  // * in a pattern matches any characters, including none; everything else matches itself.
  static VariableRule named(std::string pattern);
  static VariableRule of_kind(std::string pattern);
  static VariableRule of_rank(int rank);  // the number of axes: biases have 1
  // Combines rules. For an empty list, all_of() takes everything and any_of() nothing.
  static VariableRule all_of(std::vector<VariableRule> rules);
  static VariableRule any_of(std::vector<VariableRule> rules);

  friend VariableRule operator&&(VariableRule a, VariableRule b) { return all_of({std::move(a), std::move(b)}); }
  friend VariableRule operator||(VariableRule a, VariableRule b) { return any_of({std::move(a), std::move(b)}); }
  friend VariableRule operator!(VariableRule rule);

  bool takes(const TrainedVariable& variable) const;
  // Returns e.g. "kind 'conv' and not rank 1".
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

// Variables with their own update rule and learning rate.
struct ParameterGroup {
  VariableRule takes;
  UpdateRule rule;
  Schedule learning_rate = 1e-3F;

  bool operator==(const ParameterGroup&) const = default;
};

// The variables of a group in a model.
struct GroupMembers {
  std::string rule;                    // VariableRule::to_string(); "all others" for the optimizer's own
  std::vector<std::string> variables;  // in the order of the update
  // Variables that it would take, too, but that an earlier group has taken.
  std::vector<std::string> taken_before = {};
};

// Clips a step's gradients, summed over all replicas, before the update: first the elements, then the norm. The
// norm is that of all gradients together, as one vector, without variables whose rate has ended for good. The
// update then waits for all gradients.
struct GradientClip {
  float max_norm = 0;   // 0: no limit
  float max_value = 0;  // maximum magnitude of an element; 0: no limit

  bool on() const noexcept { return max_norm != 0 || max_value != 0; }
  bool operator==(const GradientClip&) const = default;
};

// A second set of weights: average = d average + (1 - d) weights after each update, where d is `decay` or, while
// that is less, t / (t + warmup) after t earlier updates. It starts as the weights. With `warmup` 1 and a decay of
// 1 it is the mean of all weights so far. Untrained state (running statistics) has no average.
struct WeightAverage {
  float decay = 0.999F;
  std::uint64_t warmup = 0;

  // Returns d in the update after `step` others.
  float decay_at(std::uint64_t step) const noexcept;
  bool operator==(const WeightAverage&) const = default;
};

// M. Zhang's: after every `every` updates slow = slow + share (weights - slow), and the weights become that.
struct Lookahead {
  std::uint64_t every = 5;
  float share = 0.5F;

  // Returns the share for the update that follows `step` others: 0 if nothing is done.
  float share_at(std::uint64_t step) const noexcept { return (step + 1) % every == 0 ? share : 0; }
  bool operator==(const Lookahead&) const = default;
};

struct Optimizer {
  UpdateRule rule = AdamOptions{};  // for variables that no group takes
  Schedule learning_rate = 1e-3F;
  // Tried in order: the first whose rule takes a variable gets it (see Model::parameter_groups()). compile()
  // throws ConfigError for one that gets none. The maximum is kMaxParameterGroups - 1.
  std::vector<ParameterGroup> groups = {};
  GradientClip clip = {};
  std::optional<Lookahead> lookahead = {};
  std::optional<WeightAverage> average = {};  // of the weights after lookahead

  // Returns the name of the rule for variables that no group takes: "adam", "sgd", "muon", or a custom rule's.
  std::string name() const;
  // Returns the number of arenas, each the size of the parameters, in which its rules keep moments between steps.
  int moments() const;
  bool operator==(const Optimizer&) const = default;
};

// Throws ConfigError for a value with which no optimizer works: a decay or limit below 0, a momentum or beta that
// is not from 0 to below 1, or any that is not a finite number. The functions below call it, and so does
// compile().
void check_optimizer(const Optimizer& optimizer);

// Uses Keras's default values: 0.9, 0.999, 1e-7. The epsilon is added as by PyTorch, to the root of the corrected
// second moment; Keras adds it before the correction, where the same value weighs more in the first steps. With
// .weight_decay it is AdamW (decoupled).
Optimizer adam(Schedule learning_rate = 1e-3F, AdamOptions options = {});
// Uses PyTorch's decay, 1e-2.
Optimizer adamw(Schedule learning_rate = 1e-3F, AdamOptions options = {.weight_decay = 1e-2F});
Optimizer sgd(Schedule learning_rate = 1e-2F, SgdOptions options = {});
// Uses PyTorch's rule and defaults. Updates weight matrices and convolutions, those as (outputs, the rest); biases
// need a group with another rule.
Optimizer muon(Schedule learning_rate = 1e-3F, MuonOptions options = {});

// Shows the options, except `group`, to a visitor.
void show(AdamOptions& options, OptionVisitor& visit);
void show(SgdOptions& options, OptionVisitor& visit);
void show(MuonOptions& options, OptionVisitor& visit);
void show(GradientClip& options, OptionVisitor& visit);
void show(Lookahead& options, OptionVisitor& visit);
void show(WeightAverage& options, OptionVisitor& visit);

// Converts an optimizer to a JSON object and back; the result is equal. Missing keys get defaults. Throws
// ConfigError naming the place of an invalid key or value, or if a rule is neither built in nor made by `own`.
std::string to_json(const Optimizer& optimizer);
Optimizer optimizer_from_json(std::string_view json, const UpdateMakers& own = {});

}  // namespace headrace
