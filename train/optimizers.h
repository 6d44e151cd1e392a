// How gradients change parameters. Values that describe; the moments belong to a compiled model.
#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "headrace/devices/base/shape.h"
#include "headrace/devices/kernels.h"
#include "headrace/train/schedule.h"

namespace headrace {

// The options' `group` is the model's to set.
using UpdateRule = std::variant<AdamOptions, SgdOptions, MuonOptions>;

// What a group of parameters is chosen by.
struct TrainedVariable {
  std::string name;  // "conv_1/weights"
  std::string kind;  // of its layer: "conv"
  Shape shape;
};

// Variables that are updated by a rule and at a rate of their own.
struct ParameterGroup {
  std::function<bool(const TrainedVariable&)> takes;
  UpdateRule rule;
  Schedule learning_rate = 1e-3F;
};

struct Optimizer {
  UpdateRule rule = AdamOptions{};  // of the variables that no group takes
  Schedule learning_rate = 1e-3F;
  std::vector<ParameterGroup> groups = {};  // asked in order; the maximum is kMaxParameterGroups - 1

  // Of the variables that no group takes: "adam", "sgd", "muon".
  std::string name() const;
  // The number of arenas, each the size of the parameters, that it keeps from step to step.
  int moments() const noexcept;
};

// Keras's defaults: 0.9, 0.999, 1e-7. With .weight_decay it is AdamW (decoupled).
Optimizer adam(Schedule learning_rate = 1e-3F, AdamOptions options = {});
Optimizer sgd(Schedule learning_rate = 1e-2F, SgdOptions options = {});
// For weight matrices and convolutions; biases need a group of another rule.
Optimizer muon(Schedule learning_rate = 0.02F, MuonOptions options = {});

}  // namespace headrace
