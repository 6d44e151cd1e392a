// The callbacks of a fit, in their order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/train/callbacks.h"

namespace headrace {

class CallbackList {
 public:
  // Throws ConfigError for a callback that has save() or restore() without the other or without a name.
  CallbackList(const std::vector<Callback>& callbacks, FitControl& control);

  void begin_train() const;
  void begin_epoch(int epoch) const;
  // Returns whether a callback wants an exact report of this step of the model.
  bool wants(std::uint64_t global_step) const noexcept;
  // Calls the callbacks that want an exact report of this step.
  void exact_step(const StepReport& report) const;
  // Calls the callbacks that are told when it is convenient.
  void step(const StepReport& report) const;
  void end_epoch(const EpochReport& report) const;
  void end_train() const;

  // Returns their state as a JSON object by name; of several callbacks of one name, the second is "name_2".
  std::string save() const;
  // Restores their state; missing entries leave a callback unchanged, entries of no callback here are ignored.
  // Throws ConfigError for text that save() did not return.
  void restore(const std::string& states) const;

 private:
  const std::vector<Callback>& callbacks_;
  FitControl& control_;
  std::vector<std::string> names_;  // by callback; empty if it has no state
};

}  // namespace headrace
