// Optimizers as data: rules of variables, JSON.
#include <bit>

#include "headrace/tests/support/test.h"
#include "headrace/tests/train/optimizer_of_everything.h"
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

std::string refusal_of_json(const std::string& json) {
  return message_of([&] { optimizer_from_json(json); });
}

TEST(OptimizerJson, ComesBackEqual) {
  for (const Optimizer& optimizer :
       {optimizer_of_everything(), adam(), adamw(3e-4F), sgd(0.1F, {.momentum = 0.9F}), muon()}) {
    const std::string json = to_json(optimizer);
    const Optimizer read = optimizer_from_json(json);
    EXPECT_TRUE(read == optimizer) << json;
    EXPECT_EQ(to_json(read), json);
  }
  EXPECT_FALSE(optimizer_of_everything() == muon());
}

TEST(OptimizerJson, IsEasyToReadAndWrite) {
  EXPECT_THAT(to_json(adam(1e-3F)), HasSubstr(R"("learning_rate": 0.001)"));
  const Optimizer read = optimizer_from_json(R"({
    "rule": {"sgd": {"momentum": 0.9}},
    "learning_rate": {"cosine_decay": {"peak": 0.1, "total_steps": 100}},
    "groups": [{"takes": {"all": [{"kind": "conv"}, {"not": {"rank": 1}}]}, "rule": {"adam": {}}}],
    "average": {}})");
  Optimizer expected = sgd(Schedule::cosine_decay({.peak = 0.1F, .total_steps = 100}), {.momentum = 0.9F});
  expected.groups = {{.takes = VariableRule::of_kind("conv") && !VariableRule::of_rank(1), .rule = AdamOptions{}}};
  expected.average = WeightAverage{};
  EXPECT_TRUE(read == expected);
  EXPECT_TRUE(optimizer_from_json("{}") == adam());
}

TEST(OptimizerJson, EveryFloatKeepsItsBits) {
  Philox random({.seed = 3});
  for (int i = 0; i < 20'000; ++i) {
    const float rate = std::bit_cast<float>(random.below(0x7F800000U));
    EXPECT_EQ(optimizer_from_json(to_json(adam(rate))).learning_rate.at(0), rate);
  }
  EXPECT_THROW(to_json(adam(std::numeric_limits<float>::infinity())), ConfigError);
}

// A value with which nothing works is refused at once, in C++ and in JSON.
TEST(OptimizerJson, WrongValuesAreRefused) {
  const float nan = std::nanf(""), infinity = std::numeric_limits<float>::infinity();
  for (const float wrong : {-1e-3F, nan, infinity}) {
    EXPECT_THROW(Schedule{wrong}, ConfigError) << wrong;
    EXPECT_THROW(sgd(wrong), ConfigError) << wrong;
    EXPECT_THROW(Schedule::warm_up(3, wrong), ConfigError) << wrong;
    EXPECT_THROW(adam(1e-3F, {.epsilon = wrong}), ConfigError) << wrong;
    EXPECT_THROW(adamw(1e-3F, {.weight_decay = wrong}), ConfigError) << wrong;
    EXPECT_THROW(sgd(1e-3F, {.weight_decay = wrong}), ConfigError) << wrong;
    EXPECT_THROW(muon(1e-3F, {.weight_decay = wrong}), ConfigError) << wrong;
  }
  for (const float wrong : {1.0F, 1.5F, -0.1F, nan}) {
    EXPECT_THROW(adam(1e-3F, {.beta1 = wrong}), ConfigError) << wrong;
    EXPECT_THROW(adamw(1e-3F, {.beta2 = wrong}), ConfigError) << wrong;
    EXPECT_THROW(sgd(1e-3F, {.momentum = wrong}), ConfigError) << wrong;
    EXPECT_THROW(muon(1e-3F, {.momentum = wrong}), ConfigError) << wrong;
  }
  EXPECT_THROW(sgd(0.1F, {.nesterov = true}), ConfigError) << "without a momentum it has no effect";
  Optimizer grouped = sgd();
  grouped.groups = {{.takes = VariableRule::of_rank(1), .rule = AdamOptions{.beta1 = 1}}};
  EXPECT_THROW(check_optimizer(grouped), ConfigError);
  for (const char* json :
       {R"({"learning_rate": -1})", R"({"learning_rate": 1e39})", R"({"rule": {"sgd": {"momentum": 1.5}}})",
        R"({"rule": {"adam": {"beta1": 1}}})", R"({"rule": {"adam": {"epsilon": -1}}})",
        R"({"average": {"decay": 2}})", R"({"lookahead": {"every": 0}})", R"({"clip": {"max_norm": -1}})",
        R"({"groups": [{"takes": {"rank": 1}, "rule": {"adam": {"beta2": 1.5}}}]})",
        R"({"learning_rate": {"warm_up": {"steps": 2, "then": -1}}})"}) {
    EXPECT_THAT(refusal_of_json(json), Not(IsEmpty())) << json;
  }
}

TEST(OptimizerJson, ErrorsSayWhere) {
  EXPECT_THAT(refusal_of_json("{"), HasSubstr("does not parse"));
  std::string deep(100'000, '[');
  EXPECT_THAT(refusal_of_json(deep), HasSubstr("nested more than 100 deep"));
  EXPECT_THAT(refusal_of_json("[]"), HasSubstr("at its top: expected an object"));
  EXPECT_THAT(refusal_of_json(R"({"rate": 1})"),
              HasSubstr("at rate: there is no such key, there are rule, learn"));
  EXPECT_THAT(refusal_of_json(R"({"rule": {"lion": {}}})"), HasSubstr("no rule is called 'lion'"));
  EXPECT_THAT(refusal_of_json(R"({"rule": {"sgd": {"momentun": 1}}})"), HasSubstr("at rule.sgd.momentun"));
  EXPECT_THAT(refusal_of_json(R"({"rule": {"sgd": {"nesterov": 1}}})"),
              HasSubstr("expected true or false, got 1"));
  EXPECT_THAT(refusal_of_json(R"({"rule": {"muon": {"iterations": 1e3}}})"), HasSubstr("expected a whole number"));
  EXPECT_THAT(refusal_of_json(R"({"rule": {"muon": {"iterations": 4294967296}}})"), HasSubstr("in range"));
  EXPECT_THAT(
      refusal_of_json(R"({"rule": {"muon": {"adjust_rate": "adamw"}}})"),
      HasSubstr("rule.muon.adjust_rate: expected one of original, match_rms_adamw, spectral_unclamped, none"));
  EXPECT_THAT(refusal_of_json(R"({"learning_rate": {"step": {}}})"), HasSubstr("no schedule is called 'step'"));
  EXPECT_THAT(refusal_of_json(R"({"learning_rate": {"piecewise": {"rates": [1, "a"]}}})"),
              HasSubstr("at learning_rate.piecewise.rates[1]: expected a number"));
  EXPECT_THAT(refusal_of_json(R"({"learning_rate": {"warm_up": {"steps": -1, "then": 1}}})"),
              HasSubstr("at learning_rate.warm_up.steps"));
  EXPECT_THAT(refusal_of_json(R"({"learning_rate": {"warm_up": {"steps": 1}}})"), HasSubstr("'then' is missing"));
  EXPECT_THAT(refusal_of_json(R"({"groups": [{"takes": {"rank": 1}}]})"), HasSubstr("at groups[0]: 'rule' is"));
  EXPECT_THAT(refusal_of_json(R"({"groups": [{"takes": {"like": "a"}, "rule": {"adam": {}}}]})"),
              HasSubstr("at groups[0].takes: no rule of variables is called 'like'"));
  EXPECT_THAT(refusal_of_json(R"({"groups": [{"takes": {"not": [], "any": []}, "rule": {"adam": {}}}]})"),
              HasSubstr("expected an object with one key"));
  // What a factory refuses.
  EXPECT_THAT(refusal_of_json(R"({"learning_rate": {"chained": {"schedules": [1], "boundaries": [5]}}})"),
              HasSubstr("1 boundaries part 2 schedules, got 1"));
}

// Whatever is cut out of it or put into it: an optimizer or a ConfigError.
TEST(OptimizerJson, WrongTextIsRefused) {
  const std::string whole = to_json(optimizer_of_everything());
  Philox random({.seed = 5});
  int refused = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string text = whole;
    for (std::uint32_t edits = 1 + random.below(3); edits > 0; --edits) {
      const std::size_t at = random.below(static_cast<std::uint32_t>(text.size()));
      if (random.below(2) == 0) {
        text.erase(at, 1 + random.below(8));
      } else {
        text[at] = "{}[]\",:-019etn"[random.below(14)];
      }
    }
    refused += refusal_of_json(text).empty() ? 0 : 1;
  }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace headrace::test
