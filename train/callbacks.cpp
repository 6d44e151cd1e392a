#include "headrace/train/callbacks.h"

#include <fmt/format.h>

#include <cmath>

#include "headrace/devices/base/error.h"
#include "headrace/train/engine/model_state.h"
#include "headrace/train/model.h"

namespace headrace {

void FitControl::set_learning_rate_scale(double scale) {
  if (!std::isfinite(scale) || scale < 0) {
    throw ConfigError(fmt::format("learning rates cannot be multiplied by {}", scale), "give 0 or more");
  }
  model_->state().learning_rate_scale = scale;
}

double FitControl::learning_rate_scale() const noexcept { return model_->state().learning_rate_scale; }

std::vector<double> FitControl::learning_rates() const { return model_->state().learning_rates(); }

}  // namespace headrace
