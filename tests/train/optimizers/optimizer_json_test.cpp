#include <bit>

#include "headrace/tests/support/test.h"
#include "headrace/tests/train/optimizer_of_everything.h"

namespace headrace::test {
namespace {

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
