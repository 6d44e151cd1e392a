#include "headrace/train/optimizers.h"

namespace headrace {

std::string Optimizer::name() const { return std::holds_alternative<AdamOptions>(rule) ? "adam" : "sgd"; }

int Optimizer::moments() const noexcept { return std::holds_alternative<AdamOptions>(rule) ? 2 : 1; }

Optimizer adam(Schedule learning_rate, AdamOptions options) {
  return {.rule = options, .learning_rate = learning_rate};
}

Optimizer sgd(Schedule learning_rate, SgdOptions options) {
  return {.rule = options, .learning_rate = learning_rate};
}

}  // namespace headrace
