// Losses, layers, optimizers and trainings against PyTorch's numbers.
#include <nlohmann/json.hpp>

#include "headrace/pipeline/loader.h"
#include "headrace/tests/golden/recorded_run.h"
#include "headrace/tests/train/training_fixture.h"
#include "headrace/tests/train/user_rule.h"
#include "headrace/train/layers.h"
#include "headrace/train/losses.h"

namespace headrace::test {
namespace {

// Twenty steps with each loss against PyTorch's (make_losses_expected.py wrote losses_expected.json).

struct GoldenLoss {
  std::string name;
  Loss loss;
  bool softmax = false;
};

std::ostream& operator<<(std::ostream& out, const GoldenLoss& each) { return out << each.name; }

const GoldenLoss kGoldenLosses[] = {
    {"categorical", categorical_crossentropy()},
    {"categorical_smoothed", categorical_crossentropy({.from_logits = false, .label_smoothing = 0.1F}), true},
    {"mean_squared_error", mean_squared_error()},
    {"mean_absolute_error", mean_absolute_error()},
    {"binary", binary_crossentropy()},
    {"binary_of_probabilities", binary_crossentropy({.from_logits = false}), true},
    {"squared_error_of_probabilities", mean_squared_error(), true},
    {"binary_smoothed", binary_crossentropy({.label_smoothing = 0.2F})},
    {"weighted_sum", 0.7F * categorical_crossentropy() + 0.3F * mean_squared_error()},
};

const nlohmann::json& expected_losses() {
  static const nlohmann::json expected = read_expected("losses_expected.json");
  return expected;
}

class LossesGolden : public testing::TestWithParam<GoldenLoss> {};
INSTANTIATE_TEST_SUITE_P(Losses, LossesGolden, testing::ValuesIn(kGoldenLosses),
                         [](const auto& each) { return each.param.name; });

TEST_P(LossesGolden, FollowsPyTorchForTwentySteps) {
  const nlohmann::json& all = expected_losses();
  const nlohmann::json& run = all["cases"].at(GetParam().name);
  const auto images = all["images"].get<std::vector<float>>(), labels = all["labels"].get<std::vector<float>>();
  const auto batch = all["batch"].get<std::int64_t>();
  const std::size_t records = labels.size() / 3;
  const Dataset data =
      Dataset::from(
          in_memory("golden", records, {array_of("image", Shape{6}, images), array_of("label", Shape{3}, labels)}))
          .batch({.global_batch = batch});
  for (const int replicas : {1, 2}) {
    Training training(replicas);
    Model model = training.strategy.build(
        [](Graph& g) { return g.dense(g.dense(g.input("image", {6}), 8, {.activation = Activation::kGelu}), 3); });
    if (GetParam().softmax) {
      model = training.strategy.build([](Graph& g) {
        return g.softmax(g.dense(g.dense(g.input("image", {6}), 8, {.activation = Activation::kGelu}), 3));
      });
    }
    model.compile({.optimizer = sgd(0.1F, {.momentum = 0.9F}), .loss = GetParam().loss, .metrics = {}});
    write_initial(all["initial"], model);
    Loader loader(data, training.devices);
    Trainer trainer(training.strategy, model, loader);
    ASSERT_EQ(run["losses"].size(), 20U);
    expect_run(run, model, trainer);
  }
}

// Twenty steps of nets with some layers against PyTorch's (make_layers_expected.py wrote layers_expected.json).

constexpr int kGoldenClasses = 3;

Node golden_images(Graph& g) { return g.input("image", {6, 6, 2}); }

Node average_pool_net(Graph& g) {
  const Node x = g.average_pool(g.tanh(g.conv(golden_images(g), 4)), 3, {.stride = 2});
  return g.dense(g.flatten(x), kGoldenClasses);
}

Node concat_net(Graph& g) {
  const Node x = golden_images(g);
  const Node left = g.sigmoid(g.conv(x, 3)), right = g.relu(g.conv(x, 2));
  return g.dense(g.flatten(g.concat({left, x, right})), kGoldenClasses);
}

Node add_three_net(Graph& g) {
  const Node x = g.silu(g.conv(golden_images(g), 4));
  const Node y = g.conv(x, 4);
  return g.dense(g.global_average_pool(g.add({x, y, g.conv(y, 4)})), kGoldenClasses);
}

Node softmax_inside_net(Graph& g) {
  return g.dense(g.softmax(g.dense(g.flatten(golden_images(g)), 8)), kGoldenClasses);
}

Node shared_net(Graph& g) {
  const Node x = g.gelu(g.conv(golden_images(g), 4));
  const Node once = g.conv(x, 4);
  return g.dense(g.global_average_pool(g.again(once, {g.gelu(once)})), kGoldenClasses);
}

Node synchronised_norm_net(Graph& g) {
  const Node x = g.conv(golden_images(g), 4, {.bias = false});
  const Node normal = g.batch_norm(x, {.momentum = 0.9F, .epsilon = 1e-5F, .synchronised = true});
  return g.dense(g.global_average_pool(g.relu(normal)), kGoldenClasses);
}

struct GoldenLayer {
  std::string name;
  Net net;
};

std::ostream& operator<<(std::ostream& out, const GoldenLayer& each) { return out << each.name; }

const GoldenLayer kGoldenLayers[] = {
    {"average_pool", average_pool_net},     {"concat", concat_net}, {"add_three", add_three_net},
    {"softmax_inside", softmax_inside_net}, {"shared", shared_net}, {"synchronised_norm", synchronised_norm_net},
};

const nlohmann::json& expected_layers() {
  static const nlohmann::json expected = read_expected("layers_expected.json");
  return expected;
}

class LayersGolden : public testing::TestWithParam<GoldenLayer> {};
INSTANTIATE_TEST_SUITE_P(Layers, LayersGolden, testing::ValuesIn(kGoldenLayers),
                         [](const auto& each) { return each.param.name; });

TEST_P(LayersGolden, FollowPyTorchForTwentySteps) {
  const nlohmann::json& all = expected_layers();
  const nlohmann::json& run = all["cases"].at(GetParam().name);
  const Dataset data =
      labelled({6, 6, 2}, all["images"].get<std::vector<float>>(), all["labels"].get<std::vector<std::int64_t>>())
          .batch({.global_batch = all["batch"].get<std::int64_t>()});
  for (const int replicas : {1, 2}) {
    Training training(replicas);
    Model model = training.strategy.build(GetParam().net);
    model.compile({.optimizer = sgd(0.05F, {.momentum = 0.9F})});
    write_initial(run["initial"], model);
    Loader loader(data, training.devices);
    Trainer trainer(training.strategy, model, loader);
    ASSERT_EQ(run["losses"].size(), 20U);
    expect_run(run, model, trainer);
  }
}

using Json = nlohmann::json;

// Schedules, and 24 steps of optimizers with all that goes on around an update, against PyTorch's
// (make_optimizers_expected.py wrote optimizers_expected.json).

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

using nlohmann::json;

// A few steps of training against PyTorch's (make_expected.py wrote expected.json).

Node mlp(Graph& g) { return g.dense(g.dense(g.input("image"), 16, {.activation = Activation::kRelu}), 5); }

Node conv_net(Graph& g) {
  Node x =
      g.relu(g.batch_norm(g.conv(g.input("image"), 4, {.bias = false}), {.momentum = 0.9F, .epsilon = 1e-3F}));
  x = g.conv(g.max_pool(x, 2), 6, {.padding = ConvPadding::kValid, .activation = Activation::kGelu});
  return g.dense(g.global_average_pool(x), 5);
}

Node residual(Graph& g) {
  const Node x = g.conv(g.input("image"), 4, {.stride = 2, .activation = Activation::kSilu});
  return g.dense(g.flatten(g.add(x, g.conv(x, 4, {.activation = Activation::kRelu}))), 5);
}

struct Case {
  std::string name;
  Net net;
  Optimizer optimizer;
  float label_smoothing = 0;
};

std::ostream& operator<<(std::ostream& out, const Case& each) { return out << each.name; }

const Case kCases[] = {
    {"mlp_adam", mlp, adam(1e-2F)},
    {"mlp_sgd", mlp, sgd(5e-2F)},
    {"mlp_nesterov", mlp, sgd(5e-2F, {.momentum = 0.9F, .weight_decay = 1e-2F, .nesterov = true}), 0.1F},
    {"conv_net_adamw", conv_net, adam(1e-2F, {.weight_decay = 5e-2F})},
    {"residual_momentum", residual, sgd(5e-2F, {.momentum = 0.9F})},
};

json expected_training() { return read_expected("expected.json"); }

Shape shape_of(const json& extents) {
  const auto values = extents.get<std::vector<std::int64_t>>();
  return Shape(values);
}

class TrainingGolden : public testing::TestWithParam<Case> {};

TEST_P(TrainingGolden, FollowsPyTorch) {
  const json expected = expected_training();
  const json& run = expected["cases"].at(GetParam().name);
  const Dataset data = labelled(shape_of(run["shape"]), run["images"].get<std::vector<float>>(),
                                run["labels"].get<std::vector<std::int64_t>>())
                           .batch({.global_batch = expected["batch"].get<std::int64_t>()});
  Training training(1);  // whose batch norm sees the whole batch
  Model model = training.strategy.build(GetParam().net, {.fields = data.fields()});
  model.compile({.optimizer = GetParam().optimizer,
                 .loss = sparse_categorical_crossentropy({.label_smoothing = GetParam().label_smoothing})});
  ASSERT_EQ(model.variable_names().size(), run["initial"].size());
  write_initial(run["initial"], model);

  Loader loader(data, training.devices);
  Trainer trainer(training.strategy, model, loader);
  expect_run(run, model, trainer);
}

INSTANTIATE_TEST_SUITE_P(Cases, TrainingGolden, testing::ValuesIn(kCases),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace headrace::test
