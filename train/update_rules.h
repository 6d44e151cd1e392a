// How parameters follow their gradients. A rule of your own is a class derived from UpdateFunction, or for a start
// a host_rule(); it is the rule of an optimizer or of one of its groups:
//
//   model.compile({.optimizer = {.rule = std::make_shared<Lion>(0.9F, 0.99F), .learning_rate = 1e-4F}});
//
// Schedules, groups, clipping, averages, lookahead and checkpoints are the same as with the rules of kernels.h.
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

// Arrays that a call uses and that keep nothing between calls, each of as many floats as the call has parameters.
struct UpdateScratch {
  int device = 0;
  int pinned = 0;  // in host memory that the device copies from and to
};

// One call's world. All views are f32 of one shape.
struct UpdateCall {
  Stream& stream;
  Kernels& kernels;
  const StepScalars* scalars = nullptr;  // in device memory
  int group = 0;                         // whose learning rate and corrections
  TensorView parameters = {}, gradients = {};
  std::vector<TensorView> state = {};  // in the order of state()
  std::vector<TensorView> device_scratch = {}, pinned_scratch = {};
  StepScalars* pinned_scalars = nullptr;  // room for them, where there is pinned scratch

  // In device memory, as a Factor wants it.
  const float* learning_rate() const noexcept { return &scalars->learning_rates[group]; }
  const float* correction(int which) const noexcept { return &scalars->corrections[group][which]; }
};

// Const: one object serves all replicas, each from its own stream.
class UpdateFunction {
 public:
  virtual ~UpdateFunction() = default;

  virtual std::string name() const = 0;  // "lion"; not that of a rule of this library
  // With the name all that it can be made again from.
  virtual Attributes attributes() const { return {}; }
  // What it keeps of each parameter from step to step, 0 at first: "momentum" is an array of the optimizer that is
  // called "conv/weights:momentum", is saved in checkpoints and goes on from there.
  virtual std::vector<std::string> state() const { return {}; }
  // False: each call has one whole variable in its own shape, and all gradients of the step are there. True: any
  // run of elements of the group's variables, flat, as soon as their gradients are.
  virtual bool elementwise() const { return true; }
  // ConfigError for a variable that it cannot update.
  virtual void check_variable(const TrainedVariable&) const {}
  // `host_memory`: the host may read and write the device's memory.
  virtual UpdateScratch scratch(bool /*host_memory*/) const { return {}; }
  // Two numbers of the update that follows `step` others since compile(), for UpdateCall::correction().
  virtual std::array<float, 2> corrections(std::uint64_t /*step*/) const { return {1, 1}; }

  // Submits to the stream, where it may be captured: allocates nothing and does not wait. It is given the step's
  // gradients, of the mean loss over all replicas and clipped where that is asked for, which are only to be read,
  // and changes parameters and state: on all replicas by the same arithmetic; at a learning rate of 0 it moves no
  // parameter. Whatever follows from the parameters, their bf16 copies and averages, is not
  // its concern.
  virtual void submit(const UpdateCall& call) const = 0;
};

// A rule of your own as an optimizer has it.
struct OwnRule {
  OwnRule() = default;
  template <std::derived_from<UpdateFunction> Function>
  OwnRule(std::shared_ptr<Function> of) : function(std::move(of)) {}

  std::shared_ptr<const UpdateFunction> function;
  int group = 0;  // the model's to set

  // Of one name and equal attributes.
  bool operator==(const OwnRule& other) const;
};

// Makes a rule again from what its attributes() gave. ConfigError where they do not fit.
using UpdateMaker = std::function<std::shared_ptr<const UpdateFunction>(const Attributes&)>;
using UpdateMakers = std::map<std::string, UpdateMaker>;  // by name

// Some parameters of a rule that is computed on the host.
struct HostUpdate {
  std::span<float> parameters;
  std::span<const float> gradients;
  std::vector<std::span<float>> state;
  float learning_rate = 0;
  std::uint64_t step = 0;  // updates before this one
};

// A rule of your own as a function of some elements, on every device run on the host: a CPU replica's stream calls
// it on the arrays themselves, those of other devices are copied to the host and back. The streams' threads call
// it, several at once. An exception ends the run.
std::shared_ptr<const UpdateFunction> host_rule(const std::string& name, std::vector<std::string> state,
                                                std::function<void(const HostUpdate&)> function,
                                                Attributes attributes = {});

}  // namespace headrace
