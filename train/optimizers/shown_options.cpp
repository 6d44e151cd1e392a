#include "headrace/devices/base/option_visitor.h"
#include "headrace/train/optimizers.h"

namespace headrace {

void show(DecayOptions& options, OptionVisitor& visit) {
  visit("peak", options.peak, "The rate after the warm-up.");
  visit("floor", options.floor, "The last rate.");
  visit("warmup_steps", options.warmup_steps, "Steps of the warm-up.");
  visit("total_steps", options.total_steps, "The step at which the rate is `floor`.");
}

void show(PiecewiseOptions& options, OptionVisitor& visit) {
  visit("rates", options.rates, "One more than boundaries.");
  visit("boundaries", options.boundaries, "Steps, ascending.");
}

void show(ExponentialOptions& options, OptionVisitor& visit) {
  visit("initial", options.initial, "The first rate.");
  visit("factor", options.factor, "From above 0 to 1.");
  visit("every_steps", options.every_steps, "Steps in which the rate falls by the factor.");
  visit("staircase", options.staircase, "Whether it falls in steps rather than continuously.");
}

void show(OneCycleOptions& options, OptionVisitor& visit) {
  visit("peak", options.peak, "The highest rate.");
  visit("total_steps", options.total_steps, "Steps of the whole cycle.");
  visit("warmup_share", options.warmup_share, "The part of them in which the rate rises.");
  visit("initial_divisor", options.initial_divisor, "The first rate is `peak` divided by it.");
  visit("final_divisor", options.final_divisor, "The last rate is the first one divided by it.");
  visit("linear", options.linear, "Whether it rises and falls in lines, not in cosines.");
}

void show(AdamOptions& options, OptionVisitor& visit) {
  visit("beta1", options.beta1, "The decay of the first moment.");
  visit("beta2", options.beta2, "The decay of the second moment.");
  visit("epsilon", options.epsilon, "Added to the root of the corrected second moment.");
  visit("weight_decay", options.weight_decay, "Decoupled, as AdamW's.");
}

void show(SgdOptions& options, OptionVisitor& visit) {
  visit("momentum", options.momentum, "0: none.");
  visit("weight_decay", options.weight_decay, "Added to the gradient.");
  visit("nesterov", options.nesterov, "Whether the momentum is Nesterov's.");
}

void show(MuonOptions& options, OptionVisitor& visit) {
  visit("momentum", options.momentum, "Of the gradients.");
  visit("nesterov", options.nesterov, "Whether the momentum is Nesterov's.");
  visit("epsilon", options.epsilon, "Added to the norm that a matrix is divided by.");
  visit("a", options.a, "The first coefficient of the Newton-Schulz iteration.");
  visit("b", options.b, "The second.");
  visit("c", options.c, "The third.");
  visit("iterations", options.iterations, "How often it is applied.");
  visit("weight_decay", options.weight_decay, "Decoupled, as AdamW's.");
  visit("adjust_rate", options.adjust_rate, "How the rate depends on a matrix's shape: PyTorch's adjust_lr_fn.",
        {"original", "match_rms_adamw", "spectral_unclamped", "none"});
  visit("normalize", options.normalize,
        "Whether a matrix is scaled to the norm sqrt(outputs) before an update, whatever the learning rate.");
  visit("norm_interval_first", options.norm_interval.first, "Updates between two such scalings, at first.");
  visit("norm_interval_growth", options.norm_interval.growth, "By how much this number grows.");
  visit("norm_interval_over_steps", options.norm_interval.over_steps, "The number of steps over which it grows.");
}

void show(GradientClip& options, OptionVisitor& visit) {
  visit("max_norm", options.max_norm, "The largest norm of all gradients together; 0: no limit.");
  visit("max_value", options.max_value, "The largest magnitude of an element; 0: no limit.");
}

void show(Lookahead& options, OptionVisitor& visit) {
  visit("every", options.every, "Updates between two changes of the slow weights.");
  visit("share", options.share, "How far they go towards the weights.");
}

void show(WeightAverage& options, OptionVisitor& visit) {
  visit("decay", options.decay, "The share of the average kept at each update.");
  visit("warmup", options.warmup, "Larger values let the average start more slowly.");
}

}  // namespace headrace
