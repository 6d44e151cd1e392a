// The callbacks of a fit, in their order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headrace/train/callbacks.h"

namespace headrace {

class CallbackList {
 public:
  // ConfigError for one that has save() or restore() without the other or without a name.
  CallbackList(const std::vector<Callback>& callbacks, FitControl& control);

  void begin_train() const;
  void begin_epoch(int epoch) const;
  // Whether one wants to know of exactly this step of the model.
  bool wants(std::uint64_t global_step) const noexcept;
  // To those that want to know of exactly this step.
  void exact_step(const StepReport& report) const;
  // To those that are told when it suits.
  void step(const StepReport& report) const;
  void end_epoch(const EpochReport& report) const;
  void end_train() const;

  // What they remember, as a JSON object by their names; of several of one name the second is "name_2".
  std::string save() const;
  // What is not there has no effect on its callback, and what no callback here has saved is left. ConfigError for
  // text that save() did not make.
  void restore(const std::string& states) const;

 private:
  const std::vector<Callback>& callbacks_;
  FitControl& control_;
  std::vector<std::string> names_;  // by callback; empty where it has no state
};

}  // namespace headrace
