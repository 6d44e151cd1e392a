#include "headrace/train/optimizers.h"

#include <algorithm>
#include <utility>

namespace headrace {
namespace {

int moments_of(const UpdateRule& rule) {
  const auto* own = std::get_if<OwnRule>(&rule);
  if (own != nullptr) return own->function == nullptr ? 0 : static_cast<int>(own->function->state().size());
  return std::holds_alternative<AdamOptions>(rule) ? 2 : 1;
}

}  // namespace

float WeightAverage::decay_at(std::uint64_t step) const noexcept {
  if (step == 0) return 0;
  const auto before = static_cast<double>(step);
  return static_cast<float>(std::min<double>(decay, before / (before + static_cast<double>(warmup))));
}

std::string Optimizer::name() const {
  const auto* own = std::get_if<OwnRule>(&rule);
  if (own != nullptr) return own->function == nullptr ? "" : own->function->name();
  if (std::holds_alternative<AdamOptions>(rule)) return "adam";
  return std::holds_alternative<SgdOptions>(rule) ? "sgd" : "muon";
}

int Optimizer::moments() const {
  int max_moments = moments_of(rule);
  for (const ParameterGroup& group : groups) max_moments = std::max(max_moments, moments_of(group.rule));
  return max_moments;
}

Optimizer adam(Schedule learning_rate, AdamOptions options) {
  return {.rule = options, .learning_rate = std::move(learning_rate)};
}

Optimizer adamw(Schedule learning_rate, AdamOptions options) { return adam(std::move(learning_rate), options); }

Optimizer sgd(Schedule learning_rate, SgdOptions options) {
  return {.rule = options, .learning_rate = std::move(learning_rate)};
}

Optimizer muon(Schedule learning_rate, MuonOptions options) {
  return {.rule = options, .learning_rate = std::move(learning_rate)};
}

}  // namespace headrace
