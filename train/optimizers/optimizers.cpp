#include "headrace/train/optimizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "headrace/devices/base/error.h"

namespace headrace {
namespace {

int moments_of(const UpdateRule& rule) {
  const auto* own = std::get_if<CustomRule>(&rule);
  if (own != nullptr) return own->function == nullptr ? 0 : static_cast<int>(own->function->state().size());
  return std::holds_alternative<AdamOptions>(rule) ? 2 : 1;
}

// Requires a number of at least 0, below `end` if that is given.
void check_number(const char* rule, const char* name, float value,
                  float end = std::numeric_limits<float>::infinity()) {
  if (value >= 0 && value < end) return;
  throw ConfigError(fmt::format("{}: {} is {}", rule, name, value),
                    end > 1 ? "give a finite number of at least 0" : "give a number from 0 to below 1");
}

struct RuleCheck {
  void operator()(const AdamOptions& of) const {
    check_number("adam", "beta1", of.beta1, 1);
    check_number("adam", "beta2", of.beta2, 1);
    check_number("adam", "epsilon", of.epsilon);
    check_number("adam", "weight_decay", of.weight_decay);
  }
  void operator()(const SgdOptions& of) const {
    check_number("sgd", "momentum", of.momentum, 1);
    check_number("sgd", "weight_decay", of.weight_decay);
    if (!of.nesterov || of.momentum > 0) return;
    throw ConfigError("sgd: nesterov has no effect without a momentum", "give a momentum, such as 0.9");
  }
  void operator()(const MuonOptions& of) const {
    check_number("muon", "momentum", of.momentum, 1);
    check_number("muon", "epsilon", of.epsilon);
    check_number("muon", "weight_decay", of.weight_decay);
  }
  void operator()(const CustomRule&) const {}
};

}  // namespace

void check_optimizer(const Optimizer& optimizer) {
  std::visit(RuleCheck{}, optimizer.rule);
  for (const ParameterGroup& group : optimizer.groups) std::visit(RuleCheck{}, group.rule);
  const auto& [max_norm, max_value] = optimizer.clip;
  for (const float limit : {max_norm, max_value}) {
    if (std::isfinite(limit) && limit >= 0) continue;
    throw ConfigError(fmt::format("gradients cannot be limited to {}", limit),
                      "max_norm and max_value are above 0, or 0 for no limit");
  }
  const auto& lookahead = optimizer.lookahead;
  if (lookahead && !(lookahead->every >= 1 && lookahead->share > 0 && lookahead->share <= 1)) {
    throw ConfigError(
        fmt::format("lookahead cannot go a share of {} every {} steps", lookahead->share, lookahead->every),
        "the share lies above 0 and at 1 or below, every 1 step or more");
  }
  if (optimizer.average && !(optimizer.average->decay >= 0 && optimizer.average->decay <= 1)) {
    throw ConfigError(fmt::format("an average of weights cannot decay by {}", optimizer.average->decay),
                      "the decay lies from 0 to 1");
  }
}

float WeightAverage::decay_at(std::uint64_t step) const noexcept {
  if (step == 0) return 0;
  const auto before = static_cast<double>(step);
  return static_cast<float>(std::min<double>(decay, before / (before + static_cast<double>(warmup))));
}

std::string Optimizer::name() const {
  const auto* own = std::get_if<CustomRule>(&rule);
  if (own != nullptr) return own->function == nullptr ? "" : own->function->name();
  if (std::holds_alternative<AdamOptions>(rule)) return "adam";
  return std::holds_alternative<SgdOptions>(rule) ? "sgd" : "muon";
}

int Optimizer::moments() const {
  int max_moments = moments_of(rule);
  for (const ParameterGroup& group : groups) max_moments = std::max(max_moments, moments_of(group.rule));
  return max_moments;
}

namespace {

Optimizer checked_optimizer(Schedule learning_rate, UpdateRule rule) {
  Optimizer optimizer{.rule = std::move(rule), .learning_rate = std::move(learning_rate)};
  check_optimizer(optimizer);
  return optimizer;
}

}  // namespace

Optimizer adam(Schedule learning_rate, AdamOptions options) {
  return checked_optimizer(std::move(learning_rate), options);
}
Optimizer adamw(Schedule learning_rate, AdamOptions options) {
  return checked_optimizer(std::move(learning_rate), options);
}
Optimizer sgd(Schedule learning_rate, SgdOptions options) {
  return checked_optimizer(std::move(learning_rate), options);
}
Optimizer muon(Schedule learning_rate, MuonOptions options) {
  return checked_optimizer(std::move(learning_rate), options);
}

}  // namespace headrace
