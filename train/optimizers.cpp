#include "headrace/train/optimizers.h"

#include <algorithm>

namespace headrace {
namespace {

int moments_of(const UpdateRule& rule) noexcept { return std::holds_alternative<AdamOptions>(rule) ? 2 : 1; }

}  // namespace

std::string Optimizer::name() const {
  if (std::holds_alternative<AdamOptions>(rule)) return "adam";
  return std::holds_alternative<SgdOptions>(rule) ? "sgd" : "muon";
}

int Optimizer::moments() const noexcept {
  int max_moments = moments_of(rule);
  for (const ParameterGroup& group : groups) max_moments = std::max(max_moments, moments_of(group.rule));
  return max_moments;
}

Optimizer adam(Schedule learning_rate, AdamOptions options) {
  return {.rule = options, .learning_rate = learning_rate};
}

Optimizer sgd(Schedule learning_rate, SgdOptions options) {
  return {.rule = options, .learning_rate = learning_rate};
}

Optimizer muon(Schedule learning_rate, MuonOptions options) {
  return {.rule = options, .learning_rate = learning_rate};
}

}  // namespace headrace
