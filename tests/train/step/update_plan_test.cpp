// Plans of updates.
#include "headrace/train/step/update_plan.h"
#include "headrace/tests/support/reference_optimizers.h"
#include "headrace/tests/support/test.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/step/muon_plan.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

std::string refusal_of_optimizer(const Optimizer& optimizer, const Net& net = small_cnn) {
  Training training;
  return message_of([&] { compiled(training.strategy, net, optimizer); });
}

ParameterGroup group(const VariableRule& takes, const UpdateRule& rule) { return {.takes = takes, .rule = rule}; }

const VariableRule kVectors = VariableRule::of_rank(1), kAnything = VariableRule::named("*");

TEST(UpdatePlan, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal_of_optimizer(muon()), HasSubstr("Muon is for matrices, variable 'dense/bias'"));
  Optimizer optimizer = muon();
  optimizer.groups = {group(kVectors, SgdOptions{})};
  EXPECT_EQ(refusal_of_optimizer(optimizer), "");
  optimizer.groups = {group(kVectors, SgdOptions{}), group(kVectors, SgdOptions{})};
  EXPECT_THAT(refusal_of_optimizer(optimizer), HasSubstr("parameter group 2 (rank 1) takes no variable"));
  optimizer = adam();
  optimizer.groups.assign(64, group(kAnything, SgdOptions{}));
  EXPECT_THAT(refusal_of_optimizer(optimizer), HasSubstr("63 groups"));
  optimizer.groups = {group(kVectors, AdamOptions{.beta1 = 0.8F, .beta2 = 0.9F, .epsilon = 1e-3F})};
  EXPECT_EQ(refusal_of_optimizer(optimizer), "");
  optimizer.groups = {group(kVectors, AdamOptions{.weight_decay = 0.1F})};
  EXPECT_EQ(refusal_of_optimizer(optimizer), "");
}

TEST(UpdatePlan, KeepsAsManyMomentsAsItsRulesNeed) {
  EXPECT_EQ(sgd().moments(), 1);
  EXPECT_EQ(adam().moments(), 2);
  EXPECT_EQ(muon().moments(), 1);
  EXPECT_EQ(grouped().moments(), 2);
  EXPECT_EQ(muon().name(), "muon");
}

TEST(UpdatePlan, GivesEachGroupItsRate) {
  Graph graph;
  graph.finish(small_cnn(graph));
  const VariableLayout layout(graph);
  const UpdatePlan plan(graph, layout, grouped());
  StepScalars scalars;
  plan.set_rates(10, scalars);
  EXPECT_FLOAT_EQ(scalars.learning_rates[0], 0.075F);
  EXPECT_FLOAT_EQ(scalars.learning_rates[1], 0.05F);
  EXPECT_FLOAT_EQ(scalars.learning_rates[2], 0.01F);
  EXPECT_NEAR(scalars.corrections[2][0], 1 / (1 - std::pow(0.9, 11)), 1e-5);
  EXPECT_NEAR(scalars.corrections[2][1], 1 / (1 - std::pow(0.999, 11)), 1e-2);
}

TEST(UpdatePlan, GivesEachAdamItsOwnCorrections) {
  Graph graph;
  graph.finish(small_cnn(graph));
  Optimizer optimizer = adam();
  optimizer.groups = {group(kVectors, AdamOptions{.beta1 = 0.5F, .beta2 = 0.75F})};
  StepScalars scalars;
  UpdatePlan(graph, VariableLayout(graph), optimizer).set_rates(1, scalars);
  EXPECT_NEAR(scalars.corrections[0][0], 1 / (1 - 0.9 * 0.9), 1e-4);
  EXPECT_NEAR(scalars.corrections[0][1], 1 / (1 - 0.999 * 0.999), 1e-1);
  EXPECT_NEAR(scalars.corrections[1][0], 1 / (1 - 0.25), 1e-6);
  EXPECT_NEAR(scalars.corrections[1][1], 1 / (1 - 0.5625), 1e-6);
}

// One variable's update from its gradient, by the rule of its group in grouped().
std::vector<double> updated(const Variable& variable, const std::vector<float>& before,
                            const std::vector<float>& gradients, const StepScalars& scalars) {
  std::vector<double> after;
  if (variable.spec.shape.rank() == 4) {
    const auto rows = static_cast<std::size_t>(variable.spec.shape[0]);
    RealMatrix parameters{rows, before.size() / rows, reals(before)};
    RealMatrix velocity{rows, before.size() / rows, Reals(before.size())};
    const RealMatrix gradient{rows, before.size() / rows, reals(gradients)};
    muon_step(parameters, gradient, velocity, {}, static_cast<double>(scalars.learning_rates[0]));
    return parameters.values;
  }
  for (std::size_t i = 0; i < before.size(); ++i) {
    const Trained start{static_cast<double>(before[i])};
    const bool bias = variable.spec.shape.rank() == 1;
    const SgdOptions sgd{.momentum = 0.9F, .weight_decay = 1e-3F, .nesterov = true, .group = 1};
    const AdamOptions adam{.weight_decay = 1e-2F, .group = 2};
    const auto gradient = static_cast<double>(gradients[i]);
    after.push_back(
        (bias ? sgd_step(start, gradient, sgd, scalars) : adam_step(start, gradient, adam, scalars)).parameter);
  }
  return after;
}

TEST(UpdatePlan, UpdatesEveryVariableByItsOwnRule) {
  Training training(1);  // whose gradients are those of the whole batch
  Model model = compiled(training.strategy, small_cnn, grouped());
  Loader loader(blobs(16, {6, 6, 2}).batch({.global_batch = 8}), training.devices);
  Trainer trainer(training.strategy, model, loader);
  trainer.gradients(std::move(*trainer.take()));
  trainer.all_reduce();
  trainer.finish();
  const ModelState& state = model.state();
  StepScalars scalars;
  UpdatePlan(*state.graph, state.layout, grouped()).set_rates(0, scalars);
  const std::vector<float> gradients = gradients_of(model, training.strategy);
  std::vector<std::vector<double>> expected;
  for (const Variable& variable : state.layout.variables()) {
    const std::vector<float> before = model.read_variable(variable.name);
    const auto first = gradients.begin() + variable.offset;
    expected.push_back(
        updated(variable, before, {first, first + static_cast<std::ptrdiff_t>(before.size())}, scalars));
  }
  trainer.apply_gradients();
  trainer.finish();
  for (std::size_t v = 0; v < expected.size(); ++v) {
    const Variable& variable = state.layout.variables()[v];
    // A GPU's Muon multiplies in bf16: its update, of 0.1 at the most, is right to about a percent.
    const bool rounded = on_gpu() && variable.spec.shape.rank() == 4;
    const double tolerance = rounded ? 2e-3 : 2e-5 * slack();
    const std::vector<float> after = model.read_variable(variable.name);
    for (std::size_t i = 0; i < after.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(after[i]), expected[v][i], tolerance) << variable.name << "[" << i << "]";
    }
  }
}

TEST(UpdatePlan, LeavesFrozenWeightsAlone) {
  const Net net = [](Graph& g) {
    Node x = g.conv(g.input("image", {6, 6, 2}), 4, {.trained_weights = false, .name = "frozen"});
    return g.scale(g.dense(g.flatten(g.gelu(x)), 4), 0.5F);
  };
  for (const int replicas : {1, 3}) {
    Training training(replicas);
    Model model = compiled(training.strategy, net);
    const std::vector<float> weights = model.read_variable("frozen/weights");
    const std::vector<float> bias = model.read_variable("frozen/bias");
    EXPECT_EQ(model.parameter_count(), 4 + 144 * 4 + 4);
    model.fit(blobs(30, {6, 6, 2}).batch({.global_batch = 8}), {.epochs = 2, .verbose = 0});
    model.check_mirrored();
    for (int r = 0; r < replicas; ++r) EXPECT_EQ(model.read_variable("frozen/weights", r), weights);
    EXPECT_NE(model.read_variable("frozen/bias"), bias);
  }
}

TEST(UpdatePlan, ARateOfZeroMovesNothing) {
  Optimizer optimizer = adam(1e-2F);
  optimizer.groups = {{.takes = kVectors,
                       .rule = SgdOptions{.momentum = 0.9F, .weight_decay = 0.1F, .nesterov = true},
                       .learning_rate = Schedule::linear_decay({.peak = 0.1F, .total_steps = 2})}};
  Training training;
  Model model = compiled(training.strategy, small_cnn, optimizer);
  const Dataset data = blobs(40, {6, 6, 2}).batch({.global_batch = 8});
  model.fit(data, {.verbose = 0, .stop_after_steps = 2});
  const std::vector<float> bias = model.read_variable("conv/bias");
  model.fit(data, {.verbose = 0});
  EXPECT_GT(model.global_step(), 5U);
  EXPECT_EQ(model.read_variable("conv/bias"), bias);
}

using Lengths = std::vector<std::size_t>;

// What all batches take, each padded to its largest matrix.
double padded_operations(const std::vector<Shape>& matrices, const Lengths& lengths, int iterations) {
  double operations = 0;
  std::size_t next = 0;
  for (const std::size_t length : lengths) {
    double rows = 0, columns = 0;
    for (std::size_t i = next; i < next + length; ++i) {
      const auto outputs = static_cast<double>(matrices[i][0]);
      const double inputs = static_cast<double>(matrices[i].elements()) / outputs;
      rows = std::max(rows, std::min(outputs, inputs));
      columns = std::max(columns, std::max(outputs, inputs));
    }
    operations += muon_operations(length, rows, columns, iterations);
    next += length;
  }
  return operations;
}

// Those of cifar10_speed_net, the last layer's first.
const std::vector<Shape> kSpeedNet{{256, 3, 3, 256}, {256, 3, 3, 256}, {256, 3, 3, 256},
                                   {256, 3, 3, 64},  {64, 3, 3, 64},   {64, 3, 3, 24}};

TEST(MuonBatches, TakeLargeMatricesApartFromSmallOnes) {
  const Lengths lengths = muon_batches(kSpeedNet, 3);
  EXPECT_EQ(lengths, (Lengths{3, 3}));
  EXPECT_NEAR(padded_operations(kSpeedNet, {6}, 3), 11.5e9, 0.05e9);
  EXPECT_NEAR(padded_operations(kSpeedNet, lengths, 3), 7.4e9, 0.05e9);
  EXPECT_NEAR(padded_operations(kSpeedNet, {1, 1, 1, 1, 1, 1}, 3), 6.3e9, 0.05e9) << "without padding";
}

TEST(MuonBatches, KeepSmallMatricesTogether) {
  EXPECT_EQ(muon_batches(std::vector<Shape>{{8, 4}, {300, 7}, {2, 90}, {64, 64}}, 3), (Lengths{4}));
  EXPECT_EQ(muon_batches(std::vector<Shape>{{1024, 1024}, {1, 1}, {1024, 1024}}, 3), (Lengths{1, 1, 1}));
  EXPECT_EQ(muon_batches(std::vector<Shape>{{512, 4608}}, 6), (Lengths{1}));
  EXPECT_TRUE(muon_batches({}, 3).empty());
}

TEST(MuonBatches, ATallMatrixIsAWideOne) {
  std::vector<Shape> turned;
  for (const Shape& shape : kSpeedNet) turned.push_back({shape.elements() / shape[0], shape[0]});
  EXPECT_EQ(muon_batches(turned, 3), muon_batches(kSpeedNet, 3));
}

// Against all ways to divide seven matrices.
TEST(MuonBatches, CostTheLeast) {
  constexpr int kCount = 7, kIterations = 3;
  const auto cost = [](const std::vector<Shape>& matrices, const Lengths& lengths) {
    return padded_operations(matrices, lengths, kIterations) + static_cast<double>(lengths.size()) * 13 * 3e8;
  };
  for (std::uint32_t seed = 0; seed < 50; ++seed) {
    Philox random({.seed = seed});
    std::vector<Shape> matrices;
    for (int i = 0; i < kCount; ++i) {
      matrices.push_back({1 + std::int64_t{random.below(700)}, 1 + std::int64_t{random.below(3000)}});
    }
    const double chosen = cost(matrices, muon_batches(matrices, kIterations));
    for (unsigned int cuts = 0; cuts < 1U << (kCount - 1); ++cuts) {
      Lengths lengths{1};
      for (int i = 0; i + 1 < kCount; ++i) {
        if ((cuts >> i & 1U) != 0) {
          lengths.push_back(1);
        } else {
          ++lengths.back();
        }
      }
      ASSERT_LE(chosen, cost(matrices, lengths) * (1 + 1e-12)) << seed << ", " << cuts;
    }
  }
}

TEST(NormSchedule, ScalesInEveryUpdateUnlessToldOtherwise) {
  const NormSchedule schedule({});
  for (std::uint64_t step = 0; step < 100; ++step) EXPECT_TRUE(schedule.scales(step)) << step;
  const NormSchedule third({.first = 3});
  for (std::uint64_t step = 0; step < 100; ++step) EXPECT_EQ(third.scales(step), step % 3 == 2) << step;
}

// Against the rule, carried out update by update; asked in an order of its own.
TEST(NormSchedule, WidensAsItsRuleSays) {
  for (const NormInterval& interval : {NormInterval{.first = 2, .growth = 15, .over_steps = 243},
                                       NormInterval{.first = 1, .growth = 3, .over_steps = 7},
                                       NormInterval{.first = 9, .growth = 1, .over_steps = 4}}) {
    const NormSchedule schedule(interval);
    std::vector<bool> wanted;
    const std::uint64_t steps = 3 * interval.over_steps + 40;
    for (std::uint64_t update = 1, last = 0; update <= steps; ++update) {
      const double progress =
          std::min(1.0, static_cast<double>(update) / static_cast<double>(interval.over_steps));
      const auto distance = static_cast<std::uint64_t>(interval.first) +
                            static_cast<std::uint64_t>(1e-9 + static_cast<double>(interval.growth) * progress);
      wanted.push_back(update - last >= distance);
      if (wanted.back()) last = update;
    }
    for (std::uint64_t step = steps; step-- > 0;) EXPECT_EQ(schedule.scales(step), wanted[step]) << step;
  }
}

TEST(NormSchedule, RefusesWhatIsNoDistance) {
  EXPECT_THROW(NormSchedule({.first = 0}), ConfigError);
  EXPECT_THROW(NormSchedule({.growth = -1}), ConfigError);
  EXPECT_THROW(NormSchedule({.growth = 1, .over_steps = 0}), ConfigError);
  EXPECT_THROW(NormSchedule({.growth = 1, .over_steps = std::uint64_t{1} << 60}), ConfigError);
}

}  // namespace
}  // namespace headrace::test
