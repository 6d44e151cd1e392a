// How gradients change parameters. Values that describe; what an optimizer remembers belongs to a compiled model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/train/parameter_groups.h"
#include "headrace/train/schedule.h"

namespace HEADRACE_API headrace {

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
