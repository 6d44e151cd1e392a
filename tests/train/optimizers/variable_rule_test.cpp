#include "headrace/tests/train/training_fixture.h"
#include "headrace/train/optimizers.h"
#include "headrace/train/trainer.h"

namespace headrace::test {
namespace {

bool named(const std::string& pattern, const std::string& name) {
  return VariableRule::named(pattern).takes({.name = name, .kind = "dense", .shape = {}});
}

TEST(VariableRule, AStarStandsForAnything) {
  for (const char* pattern :
       {"conv_1/weights", "*", "conv*", "*weights", "c*n*_1*/w*s", "**", "conv_1/weights*"}) {
    EXPECT_TRUE(named(pattern, "conv_1/weights")) << pattern;
  }
  for (const char* pattern : {"", "conv_1", "weights", "conv*x", "*1", "conv?1/weights", "*weights*s"}) {
    EXPECT_FALSE(named(pattern, "conv_1/weights")) << pattern;
  }
  EXPECT_TRUE(named("*ab*ab", "aab_abab"));
  EXPECT_FALSE(named("*ab*ab", "aab"));
  EXPECT_TRUE(named("", ""));
  EXPECT_FALSE(named("*a*a*a*a*a*a*a*a*b", std::string(2000, 'a'))) << "and takes no time";
}

TEST(VariableRule, Combines) {
  const TrainedVariable weights{.name = "conv/weights", .kind = "conv", .shape = {4, 3, 3, 2}};
  const TrainedVariable bias{.name = "conv/bias", .kind = "conv", .shape = {4}};
  const VariableRule conv = VariableRule::of_kind("conv"), vector = VariableRule::of_rank(1);
  EXPECT_TRUE((conv && vector).takes(bias));
  EXPECT_FALSE((conv && vector).takes(weights));
  EXPECT_TRUE((conv && !vector).takes(weights));
  EXPECT_TRUE((VariableRule::of_kind("dense") || vector).takes(bias));
  EXPECT_FALSE((VariableRule::of_kind("dense") || vector).takes(weights));
  EXPECT_TRUE(VariableRule::all_of({}).takes(bias));
  EXPECT_FALSE(VariableRule::any_of({}).takes(bias));
  EXPECT_EQ((conv && !vector).to_string(), "(kind 'conv' and not rank 1)");
  EXPECT_EQ((conv || VariableRule::named("a*")).to_string(), "(kind 'conv' or name 'a*')");
  EXPECT_THROW(VariableRule::of_rank(-1), ConfigError);
}

std::string refusal_of_groups(const std::vector<VariableRule>& rules) {
  Optimizer optimizer = adam();
  for (const VariableRule& rule : rules) optimizer.groups.push_back({.takes = rule, .rule = SgdOptions{}});
  Training training(1);
  return message_of([&] { compiled(training.strategy, small_cnn, optimizer); });
}

TEST(ParameterGroups, AGroupThatTakesNothingIsNamedWithTheVariables) {
  const std::string message = refusal_of_groups({VariableRule::of_kind("dens")});
  EXPECT_THAT(message, HasSubstr("parameter group 1 (kind 'dens') takes no variable"));
  EXPECT_THAT(message, HasSubstr("dense/weights (kind 'dense', rank 2), dense/bias (kind 'dense', rank 1)"));
}

TEST(ParameterGroups, AGroupWhoseVariablesAreTakenBeforeIsToldSo) {
  const std::string message = refusal_of_groups({VariableRule::of_rank(1), VariableRule::named("*/bias")});
  EXPECT_THAT(message, HasSubstr("parameter group 2 (name '*/bias') takes no variable: groups before it have "
                                 "dense/bias, conv/bias"));
  EXPECT_THAT(message, HasSubstr("put the narrower rule first"));
}

TEST(ParameterGroups, TheFirstThatTakesAVariableHasIt) {
  Optimizer optimizer = adam();
  optimizer.groups = {{.takes = VariableRule::named("dense/*"), .rule = SgdOptions{}},
                      {.takes = VariableRule::of_rank(1), .rule = AdamOptions{}}};
  Training training(1);
  Model model = compiled(training.strategy, small_cnn, optimizer);
  const std::vector<GroupMembers> groups = model.parameter_groups();
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_EQ(groups[0].rule, "all others");
  EXPECT_THAT(groups[0].variables, ElementsAre("conv/weights"));
  EXPECT_EQ(groups[1].rule, "name 'dense/*'");
  EXPECT_THAT(groups[1].variables, ElementsAre("dense/weights", "dense/bias"));
  EXPECT_THAT(groups[1].taken_before, IsEmpty());
  EXPECT_THAT(groups[2].variables, ElementsAre("conv/bias"));
  EXPECT_THAT(groups[2].taken_before, ElementsAre("dense/bias"));
}

// A rate of its own for each variable of a deep net: more groups than a step's line of memory holds.
TEST(ParameterGroups, ThereMayBeMany) {
  const Net net = [](Graph& g) {
    Node x = g.input("image", {8});
    for (int i = 0; i < 31; ++i) x = g.dense(x, 4, {.activation = Activation::kRelu});
    return g.dense(x, 4, {.bias = false});
  };
  Training training(2);
  Model model = training.strategy.build(net, {.seed = 3});
  Optimizer optimizer = sgd(0.0F);
  for (const std::string& name : model.variable_names()) {
    const auto number = static_cast<float>(optimizer.groups.size());
    optimizer.groups.push_back(
        {.takes = VariableRule::named(name), .rule = SgdOptions{}, .learning_rate = 1e-3F * number});
  }
  ASSERT_EQ(optimizer.groups.size(), 63U);
  model.compile({.optimizer = optimizer});
  const std::vector<std::vector<float>> before = variables_of(model);
  Loader loader(blobs(8).batch({.global_batch = 8}), training.devices);
  Trainer trainer(training.strategy, model, loader);
  trainer.gradients(std::move(*trainer.take()));
  trainer.all_reduce();
  trainer.finish();
  const std::vector<float> gradients = gradients_of(model, training.strategy);
  trainer.apply_gradients();
  trainer.finish();
  model.check_mirrored();
  const std::vector<std::vector<float>> after = variables_of(model);
  for (std::size_t v = 0; v < before.size(); ++v) {
    const auto offset = static_cast<std::size_t>(model.state().layout.variables()[v].offset);
    for (std::size_t i = 0; i < before[v].size(); ++i) {
      const float rate = 1e-3F * static_cast<float>(v);
      ASSERT_NEAR(after[v][i], before[v][i] - rate * gradients[offset + i], 1e-7) << v;
    }
  }
}

}  // namespace
}  // namespace headrace::test
