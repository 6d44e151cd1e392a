// Many steps of whole optimizers, with what goes on around an update, against their formulas in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "headrace/devices/base/error.h"
#include "headrace/tests/support/reference_muon.h"
#include "headrace/tests/support/reference_optimizers.h"
#include "headrace/tests/train/toy_data.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/engine/update_plan.h"
#include "headrace/train/trainer.h"

namespace headrace {
namespace {

constexpr int kOptimizerSteps = 24;

// An optimizer of one variable in double. Its gradients are those of the net in f32.
struct RealVariable {
  test::RealMatrix weights, velocity;
  test::Reals second, slow, average;
};

struct RealOptimizer {
  const Optimizer& optimizer;
  const ModelState& state;
  std::map<std::string, RealVariable> variables = {};
  std::uint64_t step = 0;

  void begin(const Model& model) {
    for (const Variable& variable : state.layout.variables()) {
      const test::Reals values = test::reals(model.read_variable(variable.name));
      const std::size_t rows =
          variable.spec.shape.rank() > 1 ? static_cast<std::size_t>(variable.spec.shape[0]) : 1;
      RealVariable& of = variables[variable.name];
      of.weights = {rows, values.size() / rows, values};
      of.velocity = {rows, values.size() / rows, test::Reals(values.size())};
      of.second = test::Reals(values.size());
      of.slow = of.average = values;
    }
  }

  void clip(std::map<std::string, test::Reals>& gradients) const {
    double squares = 0;
    for (auto& [name, values] : gradients) {
      for (double& value : values) {
        if (optimizer.clip.max_value != 0) {
          value = std::clamp(value, -static_cast<double>(optimizer.clip.max_value),
                             static_cast<double>(optimizer.clip.max_value));
        }
        squares += value * value;
      }
    }
    if (optimizer.clip.max_norm == 0) return;
    const double factor = std::min(1.0, static_cast<double>(optimizer.clip.max_norm) / std::sqrt(squares));
    for (auto& [name, values] : gradients) {
      for (double& value : values) value *= factor;
    }
  }

  void move(RealVariable& of, const test::Reals& gradient, const StepScalars& scalars) const {
    if (const auto* rule = std::get_if<MuonOptions>(&optimizer.rule); rule != nullptr && of.weights.rows > 1) {
      const test::RealMatrix as_matrix{of.weights.rows, of.weights.columns, gradient};
      return test::muon_step(of.weights, as_matrix, of.velocity, *rule,
                             static_cast<double>(scalars.learning_rates[0]));
    }
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      test::Trained each{of.weights.values[i], of.velocity.values[i], of.second[i]};
      const UpdateRule& rule = optimizer.groups.empty() ? optimizer.rule : optimizer.groups[0].rule;
      if (const auto* as_adam = std::get_if<AdamOptions>(&rule))
        each = test::adam_step(each, gradient[i], *as_adam, scalars);
      if (const auto* as_sgd = std::get_if<SgdOptions>(&rule))
        each = test::sgd_step(each, gradient[i], *as_sgd, scalars);
      of.weights.values[i] = each.parameter;
      of.velocity.values[i] = each.first;
      of.second[i] = each.second;
    }
  }

  void follow(RealVariable& of) const {
    test::Reals& w = of.weights.values;
    for (std::size_t i = 0; i < w.size(); ++i) {
      if (optimizer.lookahead && (step + 1) % optimizer.lookahead->every == 0) {
        w[i] = of.slow[i] += static_cast<double>(optimizer.lookahead->share) * (w[i] - of.slow[i]);
      }
      if (!optimizer.average) continue;
      const auto t = static_cast<double>(step);
      const double decay = step == 0 ? 0
                                     : std::min(static_cast<double>(optimizer.average->decay),
                                                t / (t + static_cast<double>(optimizer.average->warmup)));
      of.average[i] = decay * of.average[i] + (1 - decay) * w[i];
    }
  }

  void update(std::map<std::string, test::Reals> gradients) {
    clip(gradients);
    StepScalars scalars;
    UpdatePlan(*state.graph, state.layout, optimizer).set_rates(step, scalars);
    for (auto& [name, of] : variables) {
      StepScalars here = scalars;
      if (!optimizer.groups.empty() && of.weights.rows == 1) here.learning_rates[0] = scalars.learning_rates[1];
      move(of, gradients[name], here);
      follow(of);
    }
    ++step;
  }
};

std::map<std::string, test::Reals> summed_gradients(Model& model, Strategy& strategy) {
  const std::vector<float> arena = test::gradients_of(model, strategy);
  std::map<std::string, test::Reals> gradients;
  for (const Variable& variable : model.state().layout.variables()) {
    const auto first = arena.begin() + variable.offset;
    gradients[variable.name] =
        test::reals({first, first + static_cast<std::ptrdiff_t>(variable.spec.shape.elements())});
  }
  return gradients;
}

void expect_near(const std::vector<float>& actual, const test::Reals& expected, double tolerance,
                 const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance) << what << "[" << i << "]";
  }
}

struct OptimizerCase {
  std::string name;
  Optimizer optimizer;
  double tolerance = 1e-5;
};

std::vector<OptimizerCase> optimizer_cases() {
  const Schedule cycle = Schedule::one_cycle({.peak = 0.05F, .total_steps = kOptimizerSteps});
  Optimizer with_bias_group = muon(0.02F);
  with_bias_group.groups = {
      {.takes = VariableRule::of_rank(1), .rule = SgdOptions{.momentum = 0.9F}, .learning_rate = cycle}};
  Optimizer values = sgd(0.05F);
  values.clip = {.max_norm = 0.2F, .max_value = 0.01F};
  return {{"adam", adam(5e-3F)},
          {"adamw", adamw(Schedule::warm_up(4, Schedule::cosine_decay({.peak = 5e-3F, .total_steps = 20})))},
          {"sgd", sgd(cycle, {.momentum = 0.9F, .weight_decay = 1e-2F, .nesterov = true})},
          {"muon", with_bias_group, 1e-4},
          {"values", values},
          {"adam_with_all", test::with_all_around(adam(5e-3F))},
          {"sgd_with_all", test::with_all_around(sgd(0.1F, {.momentum = 0.9F}))},
          {"muon_with_all", test::with_all_around(with_bias_group), 1e-4}};
}

class OptimizerStepsTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(R, OptimizerStepsTest, testing::Values(1, 2, 4));

TEST_P(OptimizerStepsTest, FollowTheFormulas) {
  for (const auto& [name, optimizer, tolerance] : optimizer_cases()) {
    test::Training training(GetParam());
    Model model = test::compiled(training.strategy, test::small_mlp, optimizer);
    Loader loader(test::blobs(96).batch({.global = 16}), training.devices, {.epochs = 8});
    Trainer trainer(training.strategy, model, loader);
    RealOptimizer expected{.optimizer = model.state().compiled->optimizer, .state = model.state()};
    expected.begin(model);
    for (int step = 0; step < kOptimizerSteps; ++step) {
      trainer.gradients(std::move(*trainer.take()));
      trainer.all_reduce();
      trainer.finish();
      expected.update(summed_gradients(model, training.strategy));
      trainer.apply_gradients();
      trainer.finish();
      // A GPU's Muon multiplies in bf16.
      const double allowed = (name.starts_with("muon") && test::on_gpu() ? 2e-2 : tolerance) * test::slack();
      for (const auto& [variable, of] : expected.variables) {
        const std::string what = name + ", step " + std::to_string(step) + ", " + variable;
        expect_near(model.read_variable(variable), of.weights.values, allowed, what);
        if (optimizer.average) expect_near(model.read_variable(variable + ":average"), of.average, allowed, what);
        if (optimizer.lookahead) expect_near(model.read_variable(variable + ":slow"), of.slow, allowed, what);
      }
    }
    model.check_mirrored();
  }
}

// What is captured, and what a step in pieces does, are the same bits.
TEST_P(OptimizerStepsTest, StepsInPiecesAreTheSame) {
  for (const auto& [name, optimizer, tolerance] : optimizer_cases()) {
    std::vector<std::vector<float>> left[2];
    for (const bool pieces : {false, true}) {
      test::Training training(GetParam());
      Model model = test::compiled(training.strategy, test::small_cnn, optimizer);
      Loader loader(test::blobs(60, {6, 6, 2}).batch({.global = 16}), training.devices, {.epochs = 3});
      // Whatever the buckets are: none of them is updated before all are summed.
      Trainer trainer(training.strategy, model, loader, {.buckets = {.bucket_bytes = 64}});
      trainer.warm_up();
      for (int step = 0; step < 12; ++step) {
        if (!pieces) {
          ASSERT_TRUE(trainer.step());
          continue;
        }
        trainer.gradients(std::move(*trainer.take()));
        trainer.all_reduce();
        trainer.apply_gradients();
      }
      trainer.finish();
      model.check_mirrored();
      left[pieces] = test::variables_of(model);
      for (const std::string& variable : model.optimizer_variable_names()) {
        left[pieces].push_back(model.read_variable(variable));
      }
    }
    EXPECT_EQ(left[0], left[1]) << name;
  }
}

TEST(GradientClipping, ALimitThatIsNeverReachedChangesNoBit) {
  for (const int accumulate : {1, 3}) {
    std::string hashes[2];
    for (const bool clips : {false, true}) {
      Optimizer optimizer = test::grouped();
      if (clips) optimizer.clip = {.max_norm = 1e6F, .max_value = 1e6F};
      test::Training training(2);
      Model model = test::compiled(training.strategy, test::small_cnn, optimizer);
      model.fit(test::blobs(60, {6, 6, 2}).batch({.global = 8}),
                {.epochs = 2, .verbose = 0, .accumulate = accumulate});
      hashes[clips] = model.weights_sha256();
    }
    EXPECT_EQ(hashes[0], hashes[1]) << accumulate;
  }
}

// Plain SGD moves by rate times gradient: where the norm is limited, the move is not longer.
TEST(GradientClipping, NoStepIsLongerThanTheLimit) {
  for (const int replicas : {1, 2, 4}) {
    for (const int accumulate : {1, 2}) {
      Optimizer optimizer = sgd(0.5F);
      optimizer.clip = {.max_norm = 1e-2F};
      test::Training training(replicas);
      Model model = test::compiled(training.strategy, test::small_mlp, optimizer);
      const Dataset data = test::blobs(64).batch({.global = 16});
      for (std::uint64_t step = 1; step <= 4; ++step) {
        const auto before = test::variables_of(model);
        model.fit(data, {.epochs = 4, .verbose = 0, .accumulate = accumulate, .stop_after_steps = step});
        const auto after = test::variables_of(model);
        double squares = 0;
        for (std::size_t v = 0; v < before.size(); ++v) {
          for (std::size_t i = 0; i < before[v].size(); ++i) squares += std::pow(after[v][i] - before[v][i], 2);
        }
        EXPECT_NEAR(std::sqrt(squares), 0.5 * 1e-2, 1e-6) << replicas << " replicas, step " << step;
      }
    }
  }
}

// A variable whose rate has ended counts for nothing, whether its gradient is still computed or not.
TEST(GradientClipping, WhatHasEndedCountsForNothing) {
  Optimizer ended = sgd(0.5F);
  ended.clip = {.max_norm = 1e-3F};
  Optimizer all = ended;
  ended.groups = {{.takes = VariableRule::named("dense/*"),
                   .rule = SgdOptions{},
                   .learning_rate = Schedule::piecewise({.rates = {0.5F, 0}, .boundaries = {2}})}};
  double moved[2] = {};
  for (const bool ends : {false, true}) {
    test::Training training(2);
    Model model = test::compiled(training.strategy, test::small_mlp, ends ? ended : all);
    const Dataset data = test::blobs(64).batch({.global = 16});
    model.fit(data, {.verbose = 0, .stop_after_steps = 2});
    const std::vector<float> frozen = model.read_variable("dense/weights");
    const std::vector<float> before = model.read_variable("dense_1/weights"),
                             bias = model.read_variable("dense_1/bias");
    model.fit(data, {.verbose = 0, .stop_after_steps = 3});
    const std::vector<float> after = model.read_variable("dense_1/weights");
    const std::vector<float> bias_after = model.read_variable("dense_1/bias");
    for (std::size_t i = 0; i < after.size(); ++i) moved[ends] += std::pow(after[i] - before[i], 2);
    for (std::size_t i = 0; i < bias.size(); ++i) moved[ends] += std::pow(bias_after[i] - bias[i], 2);
    EXPECT_EQ(model.read_variable("dense/weights") == frozen, ends);
  }
  EXPECT_NEAR(std::sqrt(moved[true]), 0.5e-3, 1e-7);
  EXPECT_LT(std::sqrt(moved[false]), 0.48e-3);
}

TEST(Schedules, CountOptimizerStepsWhateverAnEpochIs) {
  // A rate for three steps, then none.
  const Schedule three = Schedule::piecewise({.rates = {0.1F, 0}, .boundaries = {3}});
  for (const int accumulate : {1, 2, 5}) {
    for (const std::uint64_t steps_per_epoch : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{4}}) {
      test::Training training(2);
      Model model = test::compiled(training.strategy, test::small_mlp, sgd(three));
      const Dataset data = test::blobs(80).batch({.global = 8});
      std::vector<std::vector<float>> last = test::variables_of(model);
      for (std::uint64_t step = 1; step <= 5; ++step) {
        model.fit(data, {.epochs = 10,
                         .steps_per_epoch = steps_per_epoch,
                         .verbose = 0,
                         .accumulate = accumulate,
                         .stop_after_steps = step});
        ASSERT_EQ(model.global_step(), step);
        const std::vector<std::vector<float>> now = test::variables_of(model);
        EXPECT_EQ(now != last, step <= 3) << accumulate << " batches, " << steps_per_epoch << " steps, " << step;
        last = now;
      }
    }
  }
}

TEST(WeightAverages, AreEvaluatedInThePlaceOfTheWeights) {
  for (const Precision precision : {Precision::kF32, Precision::kBF16}) {
    for (const int replicas : {1, 2, 4}) {
      test::Training training(replicas);
      Optimizer optimizer = adam(2e-2F);
      optimizer.average = {.decay = 0.9F};
      Model model = training.strategy.build(test::small_cnn, {.seed = 3});
      model.compile({.optimizer = optimizer, .precision = precision});
      const Dataset data = test::blobs(60, {6, 6, 2}).batch({.global = 16});
      const History history = model.fit(
          data,
          {.epochs = 2, .validation = data, .verbose = 0, .validate_averaged = true, .mirror_check_every = 1});
      const std::string weights = model.weights_sha256();
      const Evaluation averaged = model.evaluate(data, {.averaged_weights = true});
      const std::vector<float> predicted = model.predict(data, {.averaged_weights = true}).values;
      EXPECT_EQ(model.weights_sha256(), weights) << "the weights stay as they are";
      EXPECT_EQ(averaged.loss, history["val_loss"].back());
      EXPECT_NE(averaged.loss, model.evaluate(data).loss);
      for (const std::string& name : model.variable_names()) {
        model.write_variable(name, model.read_variable(name + ":average"));
      }
      EXPECT_EQ(model.evaluate(data).loss, averaged.loss);
      EXPECT_EQ(model.predict(data).values, predicted);
    }
  }
}

TEST(WeightAverages, BeginAsTheWeightsWhoeverWroteThem) {
  test::Training training(2);
  Optimizer optimizer = sgd(0.1F);
  optimizer.average = WeightAverage{};
  optimizer.lookahead = Lookahead{};
  Model model = test::compiled(training.strategy, test::small_mlp, optimizer);
  const std::vector<float> written(model.read_variable("dense/bias").size(), 0.25F);
  model.write_variable("dense/bias", written);
  for (const char* name : {"dense/bias", "dense/bias:average", "dense/bias:slow"}) {
    EXPECT_EQ(model.read_variable(name, 1), written) << name;
  }
  const Dataset data = test::blobs(16).batch({.global = 8});
  EXPECT_EQ(model.evaluate(data, {.averaged_weights = true}).loss, model.evaluate(data).loss);
  model.fit(data, {.verbose = 0, .stop_after_steps = 1});
  EXPECT_EQ(model.read_variable("dense/bias:average"), model.read_variable("dense/bias"));
  EXPECT_EQ(model.read_variable("dense/bias:slow"), written);
}

TEST(WeightAverages, AMeanOfAllWeights) {
  test::Training training(1);
  Optimizer optimizer = sgd(0.1F);
  optimizer.average = {.decay = 1, .warmup = 1};
  Model model = test::compiled(training.strategy, test::small_mlp, optimizer);
  const Dataset data = test::blobs(64).batch({.global = 8});
  test::Reals sum(model.read_variable("dense/weights").size());
  for (std::uint64_t step = 1; step <= 20; ++step) {
    model.fit(data, {.epochs = 9, .verbose = 0, .stop_after_steps = step});
    const std::vector<float> now = model.read_variable("dense/weights");
    for (std::size_t i = 0; i < now.size(); ++i) sum[i] += now[i];
  }
  for (double& value : sum) value /= 20;
  expect_near(model.read_variable("dense/weights:average"), sum, 1e-6 * test::slack(), "mean");
}

// Two runs of one model differ in nothing that is written down: so a checkpoint of variables and the optimizer's
// variables is whole.
TEST(OptimizerVariables, HoldAllThatTrainingDependsOn) {
  const Optimizer optimizer = test::with_all_around(test::grouped());
  const Dataset data = test::blobs(64, {6, 6, 2}).batch({.global = 8});
  test::Training training(2), other_training(1);
  Model model = test::compiled(training.strategy, test::small_cnn, optimizer);
  model.fit(data, {.verbose = 0});
  EXPECT_EQ(model.optimizer_variable_names().size(), 4 * 4U);
  test::Training copied_training(2);
  Model copied = test::compiled(copied_training.strategy, test::small_cnn, optimizer, 99);
  for (const std::string& name : model.variable_names()) copied.write_variable(name, model.read_variable(name));
  for (const std::string& name : model.optimizer_variable_names()) {
    copied.write_variable(name, model.read_variable(name, 1));
  }
  copied.state().step = model.global_step();
  for (Model* each : {&model, &copied}) each->fit(data, {.verbose = 0});
  EXPECT_EQ(model.weights_sha256(), copied.weights_sha256());
  for (const std::string& name : model.optimizer_variable_names()) {
    EXPECT_EQ(model.read_variable(name), copied.read_variable(name)) << name;
  }
  EXPECT_THROW(model.write_variable("dense/bias:slow", std::vector<float>(3)), ConfigError);
  EXPECT_THROW(model.read_variable("dense/bias:third_moment"), ConfigError);
}

TEST(OptimizerVariables, AreMirroredToo) {
  Optimizer optimizer = sgd(0.1F);
  optimizer.average = WeightAverage{};
  test::Training training(2);
  Model model = test::compiled(training.strategy, test::small_mlp, optimizer);
  model.check_mirrored();
  const Buffer& average = model.state().optimizer[1].average;
  test::upload(training.strategy.device(1), reinterpret_cast<float*>(average.data()), 5.0F);
  try {
    model.check_mirrored();
    ADD_FAILURE() << "not seen";
  } catch (const DeviceError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("'dense_1/weights:average' differs between replicas 0 and 1"));
  }
}

TEST(OptimizerOptions, ThatCannotBeAreRefused) {
  test::Training training(1);
  const auto refusal = [&](const auto& change) -> std::string {
    Optimizer optimizer = adam();
    change(optimizer);
    try {
      test::compiled(training.strategy, test::small_mlp, optimizer);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return {};
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal([](Optimizer& of) { of.clip.max_norm = -1; }), HasSubstr("limited to -1"));
  EXPECT_THAT(refusal([](Optimizer& of) { of.clip.max_value = NAN; }), HasSubstr("limited to nan"));
  EXPECT_THAT(refusal([](Optimizer& of) { of.lookahead = {.every = 0}; }), HasSubstr("every 0 steps"));
  EXPECT_THAT(refusal([](Optimizer& of) { of.lookahead = {.share = 0}; }), HasSubstr("share of 0"));
  EXPECT_THAT(refusal([](Optimizer& of) { of.average = {.decay = 1.5F}; }), HasSubstr("decay by 1.5"));
  Model model = test::compiled(training.strategy, test::small_mlp);
  const Dataset data = test::blobs(16).batch({.global = 8});
  EXPECT_THROW(model.evaluate(data, {.averaged_weights = true}), ConfigError);
  EXPECT_THROW(model.predict(data, {.averaged_weights = true}), ConfigError);
}

}  // namespace
}  // namespace headrace
