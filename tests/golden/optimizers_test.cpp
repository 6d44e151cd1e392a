// Schedules, and 24 steps of optimizers with all that goes on around an update, against PyTorch's
// (make_optimizers_expected.py wrote optimizers_expected.json).
#include <nlohmann/json.hpp>

#include "headrace/pipeline/loader.h"
#include "headrace/tests/golden/recorded_run.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/tests/train/user_rule.h"

namespace headrace::test {
namespace {

using Json = nlohmann::json;

const Json& expected_optimizers() {
  static const Json parsed = read_expected("optimizers_expected.json");
  return parsed;
}

constexpr std::uint64_t kGoldenSteps = 24;

Schedule golden_schedule(const std::string& name, float rate = 5e-2F) {
  if (name == "cosine") return Schedule::cosine_decay({.peak = rate, .floor = 1e-4F, .total_steps = kGoldenSteps});
  if (name == "exponential") return Schedule::exponential_decay({.initial = rate, .factor = 0.9F});
  if (name == "one_cycle") return Schedule::one_cycle({.peak = 5e-2F, .total_steps = kGoldenSteps});
  if (name == "one_cycle_linear") {
    return Schedule::one_cycle({.peak = 5e-2F,
                                .total_steps = kGoldenSteps,
                                .warmup_share = 0.4F,
                                .initial_divisor = 10,
                                .final_divisor = 100,
                                .linear = true});
  }
  if (name == "piecewise") {
    return Schedule::piecewise({.rates = {rate, rate * 0.1F, rate * 0.01F}, .boundaries = {6, 15}});
  }
  if (name == "warm_cosine") {
    return Schedule::warm_up(4, Schedule::cosine_decay({.peak = rate, .total_steps = 20}));
  }
  EXPECT_EQ(name, "constant");
  return rate;
}

TEST(OptimizersGolden, SchedulesFollowPyTorchAtEveryStep) {
  const Json& rates = expected_optimizers()["rates"];
  ASSERT_EQ(rates.size(), 7U);
  for (const auto& [name, values] : rates.items()) {
    const Schedule schedule = golden_schedule(name);
    ASSERT_EQ(values.size(), kGoldenSteps);
    for (std::uint64_t t = 0; t < kGoldenSteps; ++t) {
      const double expected = values[t].get<double>();
      EXPECT_NEAR(schedule.at(t), expected, 1e-8 + 1e-6 * expected) << name << ", step " << t;
    }
  }
}

Optimizer golden_optimizer(const std::string& name) {
  Optimizer optimizer = adam(golden_schedule("cosine", 1e-2F));
  optimizer.clip.max_norm = 0.2F;
  if (name == "sgd_one_cycle") optimizer = sgd(golden_schedule("one_cycle"), {.momentum = 0.9F});
  if (name == "sgd_clip_value") {
    optimizer = sgd(golden_schedule("exponential"));
    optimizer.clip.max_value = 0.02F;
  }
  if (name == "adamw_groups_average") {
    optimizer = adamw(golden_schedule("piecewise", 1e-2F), {.weight_decay = 0.1F});
    optimizer.groups = {{.takes = VariableRule::of_rank(1),
                         .rule = AdamOptions{},
                         .learning_rate = golden_schedule("piecewise", 2e-2F)}};
    optimizer.average = {.decay = 0.9F};
  }
  if (name == "adamw_groups_betas") {
    optimizer = adamw(golden_schedule("cosine", 1e-2F), {.weight_decay = 0.1F});
    optimizer.groups = {{.takes = VariableRule::of_rank(1),
                         .rule = AdamOptions{.beta1 = 0.7F, .beta2 = 0.9F, .epsilon = 1e-3F},
                         .learning_rate = golden_schedule("cosine", 1e-2F)}};
  }
  if (name == "adam_lookahead") {
    optimizer = adam(golden_schedule("warm_cosine", 1e-2F));
    optimizer.lookahead = {.every = 5, .share = 0.4F};
  }
  if (name == "rmsprop") optimizer.rule = CustomRule(rmsprop());
  if (name == "sgd_everything") {
    optimizer = sgd(golden_schedule("one_cycle_linear"), {.momentum = 0.9F, .nesterov = true});
    optimizer.clip.max_norm = 0.3F;
    optimizer.lookahead = {.every = 3, .share = 0.5F};
    optimizer.average = {.decay = 0.8F};
  }
  return optimizer;
}

void expect_golden(const Model& model, const Json& values, const std::string& suffix, const std::string& what) {
  for (const auto& [name, expected] : values.items()) {
    const auto wanted = expected.get<std::vector<float>>();
    const std::vector<float> mine = model.read_variable(name + suffix);
    ASSERT_EQ(mine.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(mine[i], wanted[i], slack() * (1e-5F + 1e-4F * std::abs(wanted[i])))
          << what << ", " << name << suffix << "[" << i << "]";
    }
  }
}

TEST(OptimizersGolden, FollowPyTorch) {
  const UpdateMakers makers{{"rmsprop", [](const Attributes&) { return rmsprop(); }}};
  const Json& cases = expected_optimizers()["cases"];
  ASSERT_EQ(cases.size(), 8U);
  for (const auto& [name, run] : cases.items()) {
    for (const int replicas : {1, 2}) {
      const Dataset data =
          labelled({8}, run["images"].get<std::vector<float>>(), run["labels"].get<std::vector<std::int64_t>>())
              .batch({.global_batch = 4});
      Training training(replicas);
      Model model = training.strategy.build(
          [](Graph& g) { return g.dense(g.dense(g.input("image"), 16, {.activation = Activation::kRelu}), 5); },
          {.fields = data.fields()});
      // By way of its JSON.
      model.compile({.optimizer = optimizer_from_json(to_json(golden_optimizer(name)), makers)});
      for (const auto& [variable, values] : run["initial"].items()) {
        model.write_variable(variable, values.get<std::vector<float>>());
      }
      model.fit(data, {.verbose = 0, .step = {.mirror_check_every = 7}});
      ASSERT_EQ(model.global_step(), kGoldenSteps);
      const std::string what = name + " on " + std::to_string(replicas);
      expect_golden(model, run["final"], "", what);
      if (run.contains("average")) expect_golden(model, run["average"], ":average", what);
    }
  }
}

}  // namespace
}  // namespace headrace::test
