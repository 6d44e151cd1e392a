// For what writes optimizers down and reads them.
#pragma once

#include "headrace/train/optimizers.h"

namespace headrace::test {

// One of everything that an optimizer can be made of.
inline Optimizer optimizer_of_everything() {
  Optimizer optimizer =
      muon(Schedule::one_cycle({.peak = 0.3F, .total_steps = 40, .warmup_share = 0.2F, .linear = true}),
           {.momentum = 0.7F,
            .nesterov = false,
            .iterations = 4,
            .adjust_rate = MuonRate::kMatchRmsAdamw,
            .normalize = true,
            .norm_interval = {.first = 2, .growth = 15, .over_steps = 200}});
  const Schedule chain = Schedule::chained(
      {Schedule::warm_up(7, Schedule::cosine_decay({.peak = 0.1F, .floor = 1e-5F, .total_steps = 1'000'000})),
       Schedule::exponential_decay({.initial = 0.1F, .factor = 0.7F, .every_steps = 3, .staircase = true}),
       Schedule::piecewise({.rates = {0.1F, 1e-7F, 0}, .boundaries = {5, 9}}),
       Schedule::linear_decay({.peak = 0.2F, .warmup_steps = 2, .total_steps = 20}), 0.25F},
      {10, 20, 30, std::uint64_t{1} << 63});
  optimizer.groups = {
      {.takes = VariableRule::named("dense_*/weights") || !VariableRule::of_kind("c*"),
       .rule = AdamOptions{.beta1 = 0.8F, .epsilon = 1e-8F, .weight_decay = 0.01F},
       .learning_rate = chain},
      {.takes = VariableRule::all_of(
           {VariableRule::of_rank(1), VariableRule::named("\"quoted\"\n"), VariableRule::any_of({})}),
       .rule = SgdOptions{.momentum = 0.9F, .weight_decay = 5e-4F, .nesterov = true}}};
  optimizer.clip = {.max_norm = 1, .max_value = 0.5F};
  optimizer.lookahead = {.every = 6, .share = 0.8F};
  optimizer.average = {.decay = 0.9999F, .warmup = 9};
  return optimizer;
}

}  // namespace headrace::test
