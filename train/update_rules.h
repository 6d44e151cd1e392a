// The rules by which gradients update parameters. A custom rule is a class derived from UpdateFunction or, for
// quick experiments, a host_rule(); it is the rule of an optimizer or of one of its groups:
//
//   model.compile({.optimizer = {.rule = std::make_shared<Lion>(0.9F, 0.99F), .learning_rate = 1e-4F}});
//
// Schedules, groups, clipping, averages, lookahead and checkpoints work as with the rules of kernels.h.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "headrace/devices/base/api.h"
#include "headrace/devices/kernels.h"
#include "headrace/train/layers.h"

namespace HEADRACE_API headrace {

struct TrainedVariable;

// Numbers of temporary arrays for a call, each with one float per parameter of the call.
struct UpdateScratch {
  int device = 0;
  int pinned = 0;  // in host memory that the device copies from and to
};

// The arguments of one call. All views are f32 of one shape.
struct UpdateCall {
  Stream& stream;
  Kernels& kernels;
  const StepScalars* scalars = nullptr;  // in device memory
  int group = 0;                         // the group of the learning rate and corrections
  TensorView parameters = {}, gradients = {};
  std::vector<TensorView> state = {};  // in the order of state()
  std::vector<TensorView> device_scratch = {}, pinned_scratch = {};
  StepScalars* pinned_scalars = nullptr;  // room for the scalars, if there is pinned scratch

  // Returns a pointer into device memory, for a Factor.
  const float* learning_rate() const noexcept { return &scalars->learning_rates[group]; }
  const float* correction(int which) const noexcept { return &scalars->corrections[group][which]; }
};

// The function of an update rule. Const: one object serves all replicas, each from its own stream.
class UpdateFunction {
 public:
  virtual ~UpdateFunction() = default;

  virtual std::string name() const = 0;  // e.g. "lion"; must not be the name of a rule of this library
  // Returns all that is needed, with the name, to recreate the rule.
  virtual Attributes attributes() const { return {}; }
  // Returns the names of what it keeps for each parameter between steps, 0 at first: "momentum" becomes the
  // optimizer's array "conv/weights:momentum", which checkpoints save and restore.
  virtual std::vector<std::string> state() const { return {}; }
  // Returns true if a call may get any flat run of elements of the group's variables, as soon as their gradients
  // are ready; false if it needs one whole variable in its own shape and all gradients of the step.
  virtual bool elementwise() const { return true; }
  // Throws ConfigError if it cannot update the variable.
  virtual void check_variable(const TrainedVariable&) const {}
  // Returns the scratch of a call. `host_memory`: the host may read and write the device's memory.
  virtual UpdateScratch scratch(bool /*host_memory*/) const { return {}; }
  // Returns two numbers for the update that follows `step` others since compile(), for UpdateCall::correction().
  virtual std::array<float, 2> corrections(std::uint64_t /*step*/) const { return {1, 1}; }

  // Submits to the stream, possibly during capture: must not allocate or wait. Gets the step's gradients, of the
  // mean loss over all replicas and clipped if requested, which it must only read, and changes parameters and
  // state, by the same arithmetic on all replicas; a learning rate of 0 must move no parameter. It need not update
  // what depends on the parameters: their bf16 copies and averages.
  virtual void submit(const UpdateCall& call) const = 0;
};

// A custom rule as part of an optimizer.
struct CustomRule {
  CustomRule() = default;
  template <std::derived_from<UpdateFunction> Function>
  CustomRule(std::shared_ptr<Function> of) : function(std::move(of)) {}

  std::shared_ptr<const UpdateFunction> function;
  int group = 0;  // set by the model

  // Returns whether both have the same name and equal attributes.
  bool operator==(const CustomRule& other) const;
};

// Recreates a rule from its attributes(). Throws ConfigError if they do not fit.
using UpdateMaker = std::function<std::shared_ptr<const UpdateFunction>(const Attributes&)>;
using UpdateMakers = std::map<std::string, UpdateMaker>;  // by name

// The parameters that a call of a host_rule() gets: any run of them, as soon as their gradients are summed, or one
// whole variable at a time, for a rule that does not treat each element by itself.
enum class UpdateScope { kElements, kVariable };

// Some of the parameters of a rule that is computed on the host.
struct HostUpdate {
  Shape shape = {};  // of all spans: the variable's, or the run's length
  std::span<float> parameters;
  std::span<const float> gradients;
  std::vector<std::span<float>> state;
  float learning_rate = 0;
  std::uint64_t step = 0;  // updates before this one
};

// Returns a custom rule from a function of some elements. It runs on the host on every device: a CPU replica's
// stream calls it on the arrays themselves; those of other devices are copied to the host and back. The streams'
// threads call it, several at once. An exception ends the run.
std::shared_ptr<const UpdateFunction> host_rule(const std::string& name, std::vector<std::string> state,
                                                std::function<void(const HostUpdate&)> function,
                                                Attributes attributes = {},
                                                UpdateScope scope = UpdateScope::kElements);

}  // namespace headrace
