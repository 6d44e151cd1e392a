// The fields of what an optimizer consists of: visit_fields(visit, options) calls visit("name", options.name) for
// each that is written down. The options' `group` is not. Private to the room.
#pragma once

#include <concepts>
#include <type_traits>

#include "headrace/train/optimizers.h"

namespace headrace {

// Options, const or not.
template <typename T, typename Options>
concept OptionsOf = std::same_as<std::remove_const_t<T>, Options>;

template <typename Visit, OptionsOf<DecayOptions> Options>
void visit_fields(Visit& visit, Options& options) {
  visit("peak", options.peak);
  visit("floor", options.floor);
  visit("warmup_steps", options.warmup_steps);
  visit("total_steps", options.total_steps);
}

template <typename Visit, OptionsOf<PiecewiseOptions> Options>
void visit_fields(Visit& visit, Options& options) {
  visit("rates", options.rates);
  visit("boundaries", options.boundaries);
}

template <typename Visit, OptionsOf<ExponentialOptions> Options>
void visit_fields(Visit& visit, Options& options) {
  visit("initial", options.initial);
  visit("factor", options.factor);
  visit("every_steps", options.every_steps);
  visit("staircase", options.staircase);
}

template <typename Visit, OptionsOf<OneCycleOptions> Options>
void visit_fields(Visit& visit, Options& options) {
  visit("peak", options.peak);
  visit("total_steps", options.total_steps);
  visit("warmup_share", options.warmup_share);
  visit("initial_divisor", options.initial_divisor);
  visit("final_divisor", options.final_divisor);
  visit("linear", options.linear);
}

template <typename Visit, OptionsOf<AdamOptions> Options>
void visit_fields(Visit& visit, Options& options) {
  visit("beta1", options.beta1);
  visit("beta2", options.beta2);
  visit("epsilon", options.epsilon);
  visit("weight_decay", options.weight_decay);
}

template <typename Visit, OptionsOf<SgdOptions> Options>
void visit_fields(Visit& visit, Options& options) {
  visit("momentum", options.momentum);
  visit("weight_decay", options.weight_decay);
  visit("nesterov", options.nesterov);
}

template <typename Visit, OptionsOf<MuonOptions> Options>
void visit_fields(Visit& visit, Options& options) {
  visit("momentum", options.momentum);
  visit("epsilon", options.epsilon);
  visit("a", options.a);
  visit("b", options.b);
  visit("c", options.c);
  visit("iterations", options.iterations);
  visit("weight_decay", options.weight_decay);
  visit("norm_interval_first", options.norm_interval.first);
  visit("norm_interval_growth", options.norm_interval.growth);
  visit("norm_interval_over_steps", options.norm_interval.over_steps);
}

template <typename Visit, OptionsOf<GradientClip> Options>
void visit_fields(Visit& visit, Options& options) {
  visit("max_norm", options.max_norm);
  visit("max_value", options.max_value);
}

template <typename Visit, OptionsOf<Lookahead> Options>
void visit_fields(Visit& visit, Options& options) {
  visit("every", options.every);
  visit("share", options.share);
}

template <typename Visit, OptionsOf<WeightAverage> Options>
void visit_fields(Visit& visit, Options& options) {
  visit("decay", options.decay);
  visit("warmup", options.warmup);
}

}  // namespace headrace
