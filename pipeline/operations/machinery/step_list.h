// The steps that a chain of operations is compiled to, while it grows.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "headrace/pipeline/operations/machinery/step.h"

namespace headrace {

struct NamedStep {
  std::unique_ptr<Step> step;
  std::string name;
  bool takes_long = false;     // as the step says
  const char* span = nullptr;  // the name, kept by the trace
  std::size_t stage = 0;       // of the program's, that it counts as
  std::size_t decode = 0;      // that its decoding counts as
};

// An operation adds its step, or takes the last one away and adds one that does both.
class StepList {
 public:
  void add(std::unique_ptr<Step> step, std::string name) {
    const bool takes_long = step->takes_long();
    steps_.push_back({.step = std::move(step), .name = std::move(name), .takes_long = takes_long});
  }

  // The last step where it is of this class, else null.
  template <typename Wanted>
  Wanted* last() const noexcept {
    return steps_.empty() ? nullptr : dynamic_cast<Wanted*>(steps_.back().step.get());
  }
  // It does something else besides.
  void extend_last(const std::string& name) { steps_.back().name += " | " + name; }
  // Returns its name.
  std::string remove_last() {
    std::string name = std::move(steps_.back().name);
    steps_.pop_back();
    return name;
  }

  std::vector<NamedStep> take() { return std::move(steps_); }

 private:
  std::vector<NamedStep> steps_;
};

}  // namespace headrace
