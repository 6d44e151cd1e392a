#include "headrace/devices/base/option_visitor.h"
#include "headrace/train/optimizers.h"

namespace headrace {

void show(DecayOptions& options, OptionVisitor& visit) {
  visit("peak", options.peak);
  visit("floor", options.floor);
  visit("warmup_steps", options.warmup_steps);
  visit("total_steps", options.total_steps);
}

void show(PiecewiseOptions& options, OptionVisitor& visit) {
  visit("rates", options.rates);
  visit("boundaries", options.boundaries);
}

void show(ExponentialOptions& options, OptionVisitor& visit) {
  visit("initial", options.initial);
  visit("factor", options.factor);
  visit("every_steps", options.every_steps);
  visit("staircase", options.staircase);
}

void show(OneCycleOptions& options, OptionVisitor& visit) {
  visit("peak", options.peak);
  visit("total_steps", options.total_steps);
  visit("warmup_share", options.warmup_share);
  visit("initial_divisor", options.initial_divisor);
  visit("final_divisor", options.final_divisor);
  visit("linear", options.linear);
}

void show(AdamOptions& options, OptionVisitor& visit) {
  visit("beta1", options.beta1);
  visit("beta2", options.beta2);
  visit("epsilon", options.epsilon);
  visit("weight_decay", options.weight_decay);
}

void show(SgdOptions& options, OptionVisitor& visit) {
  visit("momentum", options.momentum);
  visit("weight_decay", options.weight_decay);
  visit("nesterov", options.nesterov);
}

void show(MuonOptions& options, OptionVisitor& visit) {
  visit("momentum", options.momentum);
  visit("nesterov", options.nesterov);
  visit("epsilon", options.epsilon);
  visit("a", options.a);
  visit("b", options.b);
  visit("c", options.c);
  visit("iterations", options.iterations);
  visit("weight_decay", options.weight_decay);
  visit("adjust_rate", options.adjust_rate, {"original", "match_rms_adamw", "spectral_unclamped", "none"});
  visit("normalize", options.normalize);
  visit("norm_interval_first", options.norm_interval.first);
  visit("norm_interval_growth", options.norm_interval.growth);
  visit("norm_interval_over_steps", options.norm_interval.over_steps);
}

void show(GradientClip& options, OptionVisitor& visit) {
  visit("max_norm", options.max_norm);
  visit("max_value", options.max_value);
}

void show(Lookahead& options, OptionVisitor& visit) {
  visit("every", options.every);
  visit("share", options.share);
}

void show(WeightAverage& options, OptionVisitor& visit) {
  visit("decay", options.decay);
  visit("warmup", options.warmup);
}

}  // namespace headrace
