// How gradients change parameters. Values that describe; the moments belong to a compiled model.
#pragma once

#include <string>
#include <variant>

#include "headrace/devices/kernels.h"
#include "headrace/train/schedule.h"

namespace headrace {

struct Optimizer {
  std::variant<AdamOptions, SgdOptions> rule = AdamOptions{};
  Schedule learning_rate = 1e-3F;

  // "adam", "sgd"
  std::string name() const;
  // Arenas as large as the parameters that it keeps from step to step.
  int moments() const noexcept;
};

// Keras's defaults: 0.9, 0.999, 1e-7. With .weight_decay it is AdamW (decoupled).
Optimizer adam(Schedule learning_rate = 1e-3F, AdamOptions options = {});
Optimizer sgd(Schedule learning_rate = 1e-2F, SgdOptions options = {});

}  // namespace headrace
