// Many steps of whole optimizers, with what goes on around an update, against their formulas in double.
#include "headrace/tests/support/reference_optimizers.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/tests/train/user_rule.h"
#include "headrace/train/step/update_plan.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

constexpr int kOptimizerSteps = 24;

// An optimizer of one variable in double. Its gradients are those of the net in f32.
struct RealVariable {
  RealMatrix weights, velocity;
  Reals second, slow, average;
};

struct RealOptimizer {
  const Optimizer& optimizer;
  const ModelState& state;
  std::map<std::string, RealVariable> variables = {};
  std::uint64_t step = 0;

  void begin(const Model& model) {
    for (const Variable& variable : state.layout.variables()) {
      const Reals values = reals(model.read_variable(variable.name));
      const std::size_t rows =
          variable.spec.shape.rank() > 1 ? static_cast<std::size_t>(variable.spec.shape[0]) : 1;
      RealVariable& of = variables[variable.name];
      of.weights = {rows, values.size() / rows, values};
      of.velocity = {rows, values.size() / rows, Reals(values.size())};
      of.second = Reals(values.size());
      of.slow = of.average = values;
    }
  }

  void clip(std::map<std::string, Reals>& gradients) const {
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

  // By the rules of user_rule.h as they are among the cases.
  void move_by(const std::string& rule, RealVariable& of, const Reals& gradient, double rate) const {
    double squares = 0;
    for (const double g : gradient) squares += g * g;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double g = gradient[i];
      double &w = of.weights.values[i], &m = of.velocity.values[i], &v = of.second[i];
      if (rule == "lion") {
        const double moved = 0.9 * m + 0.1 * g;
        w -= rate * ((moved > 0) - (moved < 0) + 0.1 * w);
        m = 0.99 * m + 0.01 * g;
      } else if (rule == "rmsprop") {
        v = 0.9 * v + 0.1 * g * g;
        m = 0.5 * m + g / (std::sqrt(v) + 1e-7);
        w -= rate * m;
      } else {
        w -= rate * g * std::min(1.0, 0.1 * static_cast<double>(step + 1)) *
             std::min(1.0, 0.05 / std::sqrt(squares));
      }
    }
  }

  void move(RealVariable& of, const Reals& gradient, const StepScalars& scalars) const {
    if (const auto* rule = std::get_if<MuonOptions>(&optimizer.rule); rule != nullptr && of.weights.rows > 1) {
      const RealMatrix as_matrix{of.weights.rows, of.weights.columns, gradient};
      return muon_step(of.weights, as_matrix, of.velocity, *rule, static_cast<double>(scalars.learning_rates[0]));
    }
    if (const auto* own = std::get_if<CustomRule>(&optimizer.rule)) {
      return move_by(own->function->name(), of, gradient, static_cast<double>(scalars.learning_rates[0]));
    }
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      Trained each{of.weights.values[i], of.velocity.values[i], of.second[i]};
      const bool grouped = !optimizer.groups.empty() && of.weights.rows == 1;
      const UpdateRule& rule = grouped ? optimizer.groups[0].rule : optimizer.rule;
      if (const auto* as_adam = std::get_if<AdamOptions>(&rule))
        each = adam_step(each, gradient[i], *as_adam, scalars);
      if (const auto* as_sgd = std::get_if<SgdOptions>(&rule))
        each = sgd_step(each, gradient[i], *as_sgd, scalars);
      of.weights.values[i] = each.parameter;
      of.velocity.values[i] = each.first;
      of.second[i] = each.second;
    }
  }

  void follow(RealVariable& of) const {
    Reals& w = of.weights.values;
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

  void update(std::map<std::string, Reals> gradients) {
    clip(gradients);
    StepScalars scalars;
    UpdatePlan(*state.graph, state.layout, optimizer).set_rates(step, scalars);
    for (auto& [name, of] : variables) {
      StepScalars here = scalars;
      if (!optimizer.groups.empty() && of.weights.rows == 1) {  // the only group, of biases
        here.learning_rates[0] = scalars.learning_rates[1];
        std::ranges::copy(scalars.corrections[1], here.corrections[0]);
      }
      move(of, gradients[name], here);
      follow(of);
    }
    ++step;
  }
};

std::map<std::string, Reals> summed_gradients(Model& model, Strategy& strategy) {
  const std::vector<float> arena = gradients_of(model, strategy);
  std::map<std::string, Reals> gradients;
  for (const Variable& variable : model.state().layout.variables()) {
    const auto first = arena.begin() + variable.offset;
    gradients[variable.name] = reals({first, first + static_cast<std::ptrdiff_t>(variable.spec.shape.elements())});
  }
  return gradients;
}

void expect_near(const std::vector<float>& actual, const Reals& expected, double tolerance,
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

Optimizer own(CustomRule rule, Schedule learning_rate) {
  return {.rule = std::move(rule), .learning_rate = std::move(learning_rate)};
}

std::vector<OptimizerCase> optimizer_cases() {
  const Schedule cycle = Schedule::one_cycle({.peak = 0.05F, .total_steps = kOptimizerSteps});
  Optimizer with_bias_group = muon(0.02F);
  with_bias_group.groups = {
      {.takes = VariableRule::of_rank(1), .rule = SgdOptions{.momentum = 0.9F}, .learning_rate = cycle}};
  Optimizer two_adams = adam(5e-3F);
  two_adams.groups = {{.takes = VariableRule::of_rank(1),
                       .rule = AdamOptions{.beta1 = 0.7F, .beta2 = 0.9F, .epsilon = 1e-3F, .weight_decay = 1e-2F},
                       .learning_rate = 1e-2F}};
  Optimizer values = sgd(0.05F);
  values.clip = {.max_norm = 0.2F, .max_value = 0.01F};
  return {{"adam", adam(5e-3F)},
          {"adamw", adamw(Schedule::warm_up(4, Schedule::cosine_decay({.peak = 5e-3F, .total_steps = 20})))},
          {"sgd", sgd(cycle, {.momentum = 0.9F, .weight_decay = 1e-2F, .nesterov = true})},
          {"muon", with_bias_group, 1e-4},
          {"values", values},
          {"own_of_kernels", own(std::make_shared<Lion>(0.9F, 0.99F, 0.1F), 1e-3F)},
          {"own_on_the_host", own(rmsprop(), cycle), 1e-4},
          {"own_of_variables", own(std::make_shared<LimitedDescent>(0.05F), 0.5F)},
          {"own_with_all", with_all_around(own(std::make_shared<Lion>(0.9F, 0.99F, 0.1F), cycle)), 1e-4},
          {"two_adams", two_adams},
          {"adam_with_all", with_all_around(adam(5e-3F))},
          {"sgd_with_all", with_all_around(sgd(0.1F, {.momentum = 0.9F}))},
          {"muon_with_all", with_all_around(with_bias_group), 1e-4}};
}

class OptimizerStepsTest : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(R, OptimizerStepsTest, testing::Values(1, 2, 4));

TEST_P(OptimizerStepsTest, FollowTheFormulas) {
  for (const auto& [name, optimizer, tolerance] : optimizer_cases()) {
    Training training(GetParam());
    Model model = compiled(training.strategy, small_mlp, optimizer);
    Loader loader(blobs(96).batch({.global_batch = 16}), training.devices, {.epochs = 8});
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
      const double allowed = (name.starts_with("muon") && on_gpu() ? 2e-2 : tolerance) * slack();
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
      Training training(GetParam());
      Model model = compiled(training.strategy, small_cnn, optimizer);
      Loader loader(blobs(60, {6, 6, 2}).batch({.global_batch = 16}), training.devices, {.epochs = 3});
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
      left[pieces] = variables_of(model);
      for (const std::string& variable : model.optimizer_variable_names()) {
        left[pieces].push_back(model.read_variable(variable));
      }
    }
    EXPECT_EQ(left[0], left[1]) << name;
  }
}

}  // namespace
}  // namespace headrace::test
